"""What we look at: encoders, their parts, and what can be done to them."""
