"""Answers that are made of other answers; every file is a join."""
