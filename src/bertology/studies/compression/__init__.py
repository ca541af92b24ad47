"""Studies of smaller models: what they save, and what that costs."""

TOPIC = "Smaller models, and what they cost"
