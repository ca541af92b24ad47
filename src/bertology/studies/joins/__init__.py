"""Answers that are made of other answers."""
