"""The commands: one small module for each group of them, imported without heavy libraries."""
