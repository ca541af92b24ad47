"""What layers know."""

TOPIC = "What layers know"
