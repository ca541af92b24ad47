"""Many variants of one model on the same texts, without computing anything twice."""
