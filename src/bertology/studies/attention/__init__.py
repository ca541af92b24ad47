"""What heads attend to."""

TOPIC = "What heads attend to"
