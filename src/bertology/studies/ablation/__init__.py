"""What a task loses without heads and layers."""

TOPIC = "What a task loses without heads and layers"
