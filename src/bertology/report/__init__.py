"""What people see: figures and exports of results. No torch.

It stands before `studies`: a result class says which figures it has (`Result.drawings()`, mostly
made from measures by `drawings`), and the kinds of figure exist once, in `figures`.
"""
