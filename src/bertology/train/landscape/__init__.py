"""The loss as a function of the weights: surfaces, widths, curvature, and ways of training."""
