"""The space that a model's numbers live in."""

TOPIC = "The space that a model's numbers live in"
