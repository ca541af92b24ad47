"""A study and a claim from outside, and a model and a corpus for them to work on."""
