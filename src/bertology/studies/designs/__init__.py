"""The shapes of experiments that studies of at least two topics share."""
