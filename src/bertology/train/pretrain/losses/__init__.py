"""What is predicted: one small module for each loss, all with the same two methods.

`prepare` may change what the body of the model will see; `forward` turns its states into a
`LossOutcome`. A loss that needs weights beyond those of a BertForPreTraining holds them itself;
they are kept in a run's state and are not part of the model that is saved.
"""

from bertology.train.pretrain.losses.base import Loss, LossInput, LossOutcome
from bertology.train.pretrain.losses.registry import make_loss

__all__ = ["Loss", "LossInput", "LossOutcome", "make_loss"]
