"""The shapes of experiments that studies share."""
