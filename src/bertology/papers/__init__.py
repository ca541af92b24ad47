"""One file for each paper; the file name is the reproduction's name."""
