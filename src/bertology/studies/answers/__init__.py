"""Results of studies whose own file would be too long with them."""
