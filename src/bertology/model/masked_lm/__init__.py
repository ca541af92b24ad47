"""What a masked language model predicts: scores of sentences, blanks and candidates."""
