"""Many variants of one model on the same texts, without computing anything twice.

Replay makes sweeps quick: a change in layer l leaves the layers below alone, so their output is
kept, and all variants of one layer go through the rest together. So parts of a sweep go by
examples, not by layers. Gradients of gates estimate the same in one backward pass.
"""
