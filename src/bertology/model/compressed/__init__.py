"""What a smaller model is made of: forms that plain transformers does not have."""
