"""What is kept of a forward pass: a few numbers instead of whole attention maps."""
