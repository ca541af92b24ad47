"""One batch whose labels a model guesses, run again and again under changes of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.model.masked_lm.hidden_words import Predicted

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.hooks.instrument import Reducer
    from bertology.model.interventions import Intervention
    from bertology.model.weight_edits import WeightEdit


@dataclass(frozen=True, eq=False)
class LabelGuesses:
    """A batch with a class for each example; `order` says which output stands for each class."""

    encoder: Encoder
    batch: Batch
    labels: NDArray[np.int64]  # (B,)
    order: Sequence[int]

    @property
    def there(self) -> NDArray[np.bool_]:
        """(B, 1) every example has one answer."""
        return np.ones((len(self.labels), 1), bool)

    @property
    def wanted(self) -> NDArray[np.int64]:
        """(B, 1) the right classes."""
        return self.labels[:, None]

    def predict(
        self, *changes: Intervention | WeightEdit, reduce: Mapping[str, Reducer] | None = None
    ) -> Predicted:
        """The loss of each example in nats, and the class that is guessed."""
        logits = self.encoder.run(self.batch, do=changes, reduce=reduce).logits
        logs = torch.log_softmax(logits.float()[:, list(self.order)], dim=-1).cpu()
        right = torch.as_tensor(self.labels)[:, None]
        return Predicted(-logs.gather(-1, right)[:, 0].numpy(), logs.argmax(-1)[:, None].numpy())


@dataclass(frozen=True, eq=False)
class OnlyStates:
    """A batch of a model that predicts nothing: only its states and maps can be looked at."""

    encoder: Encoder
    batch: Batch

    @property
    def there(self) -> NDArray[np.bool_]:
        """(B, 1) nothing is predicted."""
        return np.zeros((len(self.batch), 1), bool)

    @property
    def wanted(self) -> NDArray[np.int64]:
        """(B, 1)"""
        return np.zeros((len(self.batch), 1), np.int64)

    def predict(
        self, *changes: Intervention | WeightEdit, reduce: Mapping[str, Reducer] | None = None
    ) -> Predicted:
        """No loss; reducers see the run."""
        self.encoder.run(self.batch, do=changes, reduce=reduce)
        size = len(self.batch)
        return Predicted(np.full(size, np.nan, np.float32), np.zeros((size, 1), np.int64))
