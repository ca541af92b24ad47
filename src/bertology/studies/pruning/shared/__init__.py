"""What at least two studies of this topic share; no module in here is a study."""
