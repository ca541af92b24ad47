"""Answers that are made of other answers; every file or folder is a join."""
