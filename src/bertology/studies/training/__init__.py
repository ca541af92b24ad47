"""What pre-training and fine-tuning give a model."""

TOPIC = "What pre-training and fine-tuning give a model"
