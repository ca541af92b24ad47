"""A bertology plugin: into how many pieces does a tokenizer cut a word?"""
