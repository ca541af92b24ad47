"""Text with what is known about it: tags, links, and the types of attention maps."""
