"""What is predicted: one small module for each loss, all with the same two methods.

`prepare` may change what the body of the model will see; `forward` turns its states into a
`LossOutcome`. A loss that needs weights beyond those of a BertForPreTraining holds them itself;
they are kept in a run's state and are not part of the model that is saved.
"""

from __future__ import annotations

from bertology.errors import UnknownNameError
from bertology.train.fresh import Architecture
from bertology.train.pretrain.config import LOSSES, Objective
from bertology.train.pretrain.losses.base import Loss, LossInput, LossOutcome
from bertology.train.pretrain.losses.boundary import SpanBoundary
from bertology.train.pretrain.losses.masked import MaskedTokens, SentenceRelation
from bertology.train.pretrain.losses.order import NgramOrder
from bertology.train.pretrain.losses.permutation import PermutationOrder
from bertology.train.pretrain.losses.replaced import ReplacedTokens
from bertology.train.pretrain.pairings import find_pairing

__all__ = ["Loss", "LossInput", "LossOutcome", "make_loss"]


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
