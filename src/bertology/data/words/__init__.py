"""What is known of words: where they stand, their classes, the links between them."""
