"""Attributions: how much each word of a text is said to matter to a classifier's answer."""
