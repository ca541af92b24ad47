"""Many variants of one model over the same texts, without repeated work."""
