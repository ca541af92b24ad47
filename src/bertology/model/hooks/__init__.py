"""What makes one run of a model visible and changeable, and is gone after it."""
