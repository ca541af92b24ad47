"""Studies of what can go and what must stay."""

TOPIC = "What can go, and what must stay"
