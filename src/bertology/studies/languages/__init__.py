"""Several languages in one model: what they share, and what one gives to another."""

TOPIC = "Several languages in one model: what they share, and what one gives to another"
