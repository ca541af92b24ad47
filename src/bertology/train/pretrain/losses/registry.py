"""From the names in a recipe to the modules that do it."""

from __future__ import annotations

from bertology.errors import UnknownNameError
from bertology.train.fresh import Architecture
from bertology.train.pretrain.config import LOSSES, Objective
from bertology.train.pretrain.losses.base import Loss
from bertology.train.pretrain.losses.boundary import SpanBoundary
from bertology.train.pretrain.losses.masked import MaskedTokens, SentenceRelation
from bertology.train.pretrain.losses.order import NgramOrder
from bertology.train.pretrain.losses.permutation import PermutationOrder
from bertology.train.pretrain.losses.replaced import ReplacedTokens
from bertology.train.pretrain.pairings import find_pairing


def make_loss(name: str, objective: Objective, model: Architecture, vocab_size: int) -> Loss:
    """The loss of this name, with fresh weights where it has any of its own."""
    if name == "mlm":
        return MaskedTokens()
    if name == "sentence":
        return SentenceRelation(model.hidden, len(find_pairing(objective.pairing).relations))
    if name == "boundary":
        return SpanBoundary(model.hidden, longest=model.max_length, spread=model.spread)
    if name == "order":
        return NgramOrder(objective.shuffled)
    if name == "permutation":
        return PermutationOrder()
    if name == "replaced":
        return ReplacedTokens(model, vocab_size)
    raise UnknownNameError("loss", name, LOSSES)
