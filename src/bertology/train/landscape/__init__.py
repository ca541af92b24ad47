"""The loss as a function of the weights: surfaces, widths, curvature, and ways of training.

`terrain` (losses of points, in place), `directions` (filter-normalised, planes), `curvature`
(products with the Hessian), `widths`, `walks` (the weights after each epoch, and twins), `survey`
(all of it for one run). `loss-landscape` makes each row of a surface a part; points of an
unfinished one are kept.
"""
