"""What a masked language model predicts."""

TOPIC = "What a masked language model predicts"
