"""Layers first, then predictions: TinyBERT (Jiao et al. 2020), in its two stages on a task's data.

In the first stage each layer of the student follows one of the teacher: its attention before the
softmax, its states and the input layer's, by mean squared differences. States go through learnt
maps, one for the input layer and one for all others, so students may be narrower; they begin as
the identity, and are left behind. In the second stage the student learns the answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.distil.seen import SCORES, STATES, Needs, common_heads, real_tokens
from bertology.train.distil.soft_labels import Distilled
from bertology.train.distil.staged import Staged
from bertology.train.distil.students import chosen_layers
from bertology.train.ways.way import HELPER, Lesson, Pass


@dataclass(frozen=True)
class LayerFollowing(Distilled):
    """Trained: the body, on the teacher's attention and states; no label is seen."""

    which: str = parameter("even", "The teacher's layers that are followed.")
    heads: int = parameter(0, "Parts that attention is compared in; 0: the heads.", minimum=0)

    def teacher_needs(self, lesson: Lesson) -> Needs:
        """States of all followed layers and of the input layer, and attention."""
        student, teacher = Encoder(lesson.model), Encoder(self.teacher.model)
        own, its = student.shape.layers, teacher.shape.layers
        if own > its:
            raise CapabilityError(f"A student of {own} layers cannot follow {its} layer by layer.")
        followed = chosen_layers(self.which, own, its)
        read = {"student": (student, range(1, own + 1)), "teacher": (teacher, followed)}
        common_heads(read, self.heads)
        return Needs(states=(0, *followed), scores=followed, heads=self.heads)

    def prepare(self, lesson: Lesson) -> None:
        """The teacher's answers, and the maps of states."""
        super().prepare(lesson)
        own, its = (Encoder(m).shape.hidden for m in (lesson.model, self.teacher.model))
        maps = nn.ModuleList(nn.Linear(own, its, bias=False) for _ in range(2))
        with torch.no_grad():
            for one in maps.parameters():
                one.copy_(torch.eye(its, own))
        lesson.model.add_module(HELPER, maps.to(lesson.model.device))

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """The mean over layers of both differences, and the input layer's."""
        layers = tuple(range(1, lesson.layers + 1))
        needs = Needs(states=(0, *layers), scores=layers, heads=self.heads)
        seen = self.see(lesson, inputs, needs)
        real = real_tokens(inputs)
        below, above = getattr(lesson.model, HELPER)
        own = torch.cat([below(seen[STATES][:, :1]), above(seen[STATES][:, 1:])], 1)
        states = (own - self.answer(lesson, STATES)).square().mean(-1)  # (B, K, T)
        tokens = real[:, None].float()
        by_layer = (states * tokens).sum((0, 2)) / tokens.sum((0, 2))  # (K,)
        maps = (seen[SCORES] - self.answer(lesson, SCORES)).square().mean(2)  # (B, K, T, T)
        pairs = (real[:, :, None] & real[:, None])[:, None].float()
        attention = (maps * pairs).sum((0, 2, 3)) / pairs.sum((0, 2, 3))
        return by_layer[0] + by_layer[1:].mean() + attention.mean()

    def finish(self, lesson: Lesson) -> None:
        """The model alone."""
        super().finish(lesson)
        if hasattr(lesson.model, HELPER):
            delattr(lesson.model, HELPER)


@dataclass(frozen=True)
class Layers(Staged):
    """Trained: first the body, on the teacher's layers; then everything, on its answers."""

    summary: ClassVar[str] = "first a teacher's attention and states are learnt, then its answers"

    which: str = parameter("even", "The teacher's layers that are followed.")
    heads: int = parameter(0, "Parts that attention is compared in; 0: the heads.", minimum=0)

    def first(self) -> LayerFollowing:
        """The layers."""
        return LayerFollowing(self.teacher, which=self.which, heads=self.heads)
