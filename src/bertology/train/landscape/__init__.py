"""The loss as a function of the weights: surfaces, widths, curvature, and the way a training took."""
