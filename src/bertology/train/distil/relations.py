"""Relations between tokens: MiniLM (Wang et al. 2020; in parts of any number: MiniLM v2, 2021).

In the first stage the student's last layer follows one layer of the teacher's: how each token
attends to each (queries with keys), and how each token's value relates to each other's. Both are
distributions over tokens, compared by KL. Nothing ties the student's width or depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bertology.errors import ParameterError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.distil.seen import SCORES, VALUES, Needs, common_heads, real_tokens
from bertology.train.distil.soft_labels import Distilled
from bertology.train.distil.staged import Staged
from bertology.train.ways.way import Lesson, Pass


@dataclass(frozen=True)
class RelationFollowing(Distilled):
    """Trained: the body, on the relations of its last layer; no label is seen."""

    layer: int = parameter(0, "The teacher's layer, from 1; 0 for the last.", minimum=0)
    heads: int = parameter(0, "Parts that vectors are compared in; 0: the heads.", minimum=0)

    def teacher_needs(self, lesson: Lesson) -> Needs:
        """The relations of one layer."""
        teacher = Encoder(self.teacher.model)
        there = teacher.shape.layers
        if self.layer > there:
            raise ParameterError("layer", self.name, f"be at most {there}", self.layer)
        at = (self.layer or there,)
        student = Encoder(lesson.model), (lesson.layers,)
        common_heads({"student": student, "teacher": (teacher, at)}, self.heads)
        return Needs(scores=at, values=at, heads=self.heads)

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """The sum of both divergences."""
        last = (lesson.layers,)
        seen = self.see(lesson, inputs, Needs(scores=last, values=last, heads=self.heads))
        real = real_tokens(inputs)
        both = [relation_loss(seen[n], self.answer(lesson, n), real) for n in (SCORES, VALUES)]
        return torch.stack(both).sum()


@dataclass(frozen=True)
class Relations(Staged):
    """Trained: first the body, on the relations of its last layer; then everything, on answers."""

    summary: ClassVar[str] = "first a teacher's relations between tokens are learnt, then answers"

    layer: int = parameter(0, "The teacher's layer, from 1; 0 for the last.", minimum=0)
    heads: int = parameter(0, "Parts that vectors are compared in; 0: the heads.", minimum=0)

    def first(self) -> RelationFollowing:
        """The relations."""
        return RelationFollowing(self.teacher, layer=self.layer, heads=self.heads)


def relation_loss(own: Tensor, its: Tensor, real: Tensor) -> Tensor:
    """The mean KL from the student's to the teacher's rows, (B, K, heads, T, T) before softmax.

    Only real tokens are related, and only to real ones.
    """
    keys = real[:, None, None, None]
    one, other = (x.masked_fill(~keys, torch.finfo(x.dtype).min).log_softmax(-1)
                  for x in (own, its))  # fmt: skip
    each = torch.where(keys, other.exp() * (other - one), 0.0).sum(-1)  # (B, K, heads, T)
    queries = real[:, None, None].expand_as(each)
    return (each * queries).sum() / queries.sum()
