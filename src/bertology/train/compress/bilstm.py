"""A BiLSTM over static vectors that learns from the original: no transformer any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bertology.model.compressed.bilstm import make
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import ONE_EPOCH, OTHER, Method
from bertology.train.compress.students import check_copies, with_copies
from bertology.train.compress.work import Work
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.encoded import learnable

_COPIES, _MOST = 20, 100_000


@dataclass(frozen=True)
class Bilstm(Method):
    """It learns the original's logits, and begins with the vectors of its table of pieces.

    A pair of texts is read one text at a time, and compared.
    """

    summary: ClassVar[str] = "a BiLSTM over static vectors learns the original's answers"
    source: ClassVar[str] = "Tang et al. 2019"

    hidden: int = parameter(150, "States of each direction.", minimum=1)
    hard: float = parameter(0.0, "Share of the labels in the loss.", minimum=0, maximum=1)
    dropout: float = parameter(0.1, "Dropout before the head.", minimum=0, maximum=0.9)
    copies: int | None = parameter(
        None,
        "Copies of each text with hidden words, which the original answers. If not given: "
        f"{_COPIES}, or fewer so that there are no more than {_MOST:,} texts.",
        minimum=0,
    )
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)
    rate: float = parameter(1e-3, "The highest learning rate.", minimum=1e-9)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.copies is not None:
            check_copies(self, self.copies, self.hard)

    @property
    def begins(self) -> bool:
        """With the original, whatever came before."""
        return True

    @property
    def kind(self) -> str:
        """Another kind of model."""
        return OTHER

    def apply(self, work: Work) -> Encoder:
        """Make it, and teach it."""
        original, tokens = work.teacher, work.teacher.tokenizer
        pair = learnable(work.train).pair or work.train.examples[0].text_b is not None
        model = make(
            original.model.get_input_embeddings().weight.detach().cpu(),
            labels=int(original.config.num_labels),
            hidden=self.hidden,
            dropout=self.dropout,
            pair_tokens=(tokens.cls_token_id, tokens.sep_token_id) if pair else None,
            padding=tokens.pad_token_id,
            generator=torch.Generator().manual_seed(work.seed),
        )
        for name in ("id2label", "label2id", "problem_type"):
            setattr(model.config, name, getattr(original.config, name, None))
        student = work.around(model.to(original.device), tokens)
        copies = self.copies
        if copies is None:
            # What is learnt from hard labels too has no copies, whose labels need not be right.
            copies = 0 if self.hard else min(_COPIES, max(0, _MOST // len(work.train) - 1))
        data = with_copies(work, copies)
        way = SoftLabels(work.asked(tokens), hard=self.hard, match="logits")
        work.train_on(student, ways=(way,), epochs=self.epochs, rate=self.rate, on=data)
        return student
