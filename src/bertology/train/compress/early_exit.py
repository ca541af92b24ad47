"""Early exit: easy texts leave after a lower layer, with the answer of a head there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from bertology.errors import CapabilityError, ParameterError
from bertology.model.compressed.early_exit import add_exits, all_logits
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import EXITS, ONE_EPOCH, Method
from bertology.train.compress.work import Work
from bertology.train.encoded import learnable
from bertology.train.ways import Lesson, Pass, Way

__all__ = ["EarlyExit", "Exits"]

_EXITS = ".early_exits."


@dataclass(frozen=True)
class EarlyExit(Method):
    """Heads are added to some layers and trained alone, the rest of the model is as it was.

    A text leaves at the first head whose answer has an entropy (in nats) below a limit. So the
    model is no smaller, a little larger; it saves time where texts are read one by one.
    """

    summary: ClassVar[str] = "sure answers leave after a lower layer, by heads that are trained"
    source: ClassVar[str] = "Xin et al. 2020"
    against: ClassVar[dict[str, str]] = {
        "token_elimination": "rows and tokens cannot both be left out",
        "factorised": "exits belong to layers of their own",
    }

    exits: int = parameter(3, "How many layers have a head; fewer if there are fewer.", minimum=1)
    entropy: float = parameter(0.1, "A text leaves below this entropy of its answer.", minimum=0)
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)

    @property
    def kind(self) -> str:
        """Heads for the model as it is."""
        return EXITS

    def apply(self, work: Work) -> Encoder:
        """Add heads, and train them."""
        if learnable(work.train).kind != "classification":
            raise CapabilityError(
                "Early exit needs a task of classes: a number does not tell how sure it is."
            )
        count = work.encoder.shape.layers
        if count < 2:
            must = "be left out for a model of one layer, which has no exit before its end"
            raise ParameterError("method", "compress", must, self.text)
        exits = min(self.exits, count - 1)
        places = [(i + 1) * count // (exits + 1) - 1 for i in range(exits)]
        generator = torch.Generator().manual_seed(work.seed)
        model = add_exits(
            work.encoder.model, layers=places, entropy=self.entropy, generator=generator
        )
        work.say(f"exits after layers {', '.join(str(i + 1) for i in places)} of {count}")
        found = work.around(model)
        work.train_on(found, ways=(Exits(),), epochs=self.epochs)
        return found


@dataclass(frozen=True)
class Exits(Way):
    """Trained: the heads of early exits, each on the labels."""

    summary: ClassVar[str] = "heads of early exits are trained, nothing else"
    recordable: ClassVar[bool] = False

    def prepare(self, lesson: Lesson) -> None:
        """Freeze all but the exits."""
        for name, weight in lesson.model.named_parameters():
            weight.requires_grad_(_EXITS in f".{name}")

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """The mean over exits; the model's own head comes last and is left alone."""
        low = lesson.precision == "bfloat16"
        with torch.autocast(lesson.model.device.type, dtype=torch.bfloat16, enabled=low):
            answers = all_logits(lesson.model, **inputs)[:-1]
        return torch.stack([functional.cross_entropy(a.float(), targets) for a in answers]).mean()
