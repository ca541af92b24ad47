"""What at least two joins share; no module in here is a join."""
