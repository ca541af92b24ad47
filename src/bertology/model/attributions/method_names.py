"""The names of the methods and what each is; without torch, for help texts and pages."""

from __future__ import annotations

from collections.abc import Mapping

METHODS: Mapping[str, str] = {
    "attention": "attention of the last layer, from the token that the classifier reads, mean over "
    "heads",
    "mean-attention": "the same attention, mean over all layers",
    "rollout": "attention multiplied through the layers, with the residual stream",
    "norms": "the size of what the last layer's attention brings from each word",
    "gradient-x-input": "the gradient of the answer's log-odds times what enters the first layer, "
    "counted from a mask",
    "integrated-gradients": "gradients along the way from a text of masks to this one; they add up "
    "to the change of the log-odds",
    "left-out": "how much less sure the answer is without the word, in log-odds",
}
"""What each method is, by its name."""

TITLES: Mapping[str, str] = {
    "attention": "attention (last layer)",
    "mean-attention": "attention (all layers)",
    "rollout": "attention rollout",
    "norms": "norm-based attention",
    "gradient-x-input": "gradient × input",
    "integrated-gradients": "integrated gradients",
    "left-out": "leaving out",
    "random": "random order",
}
"""What each is called in figures."""
