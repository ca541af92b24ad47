"""HEX: what a superficial model predicts is projected out of the answers (Wang et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.errors import CapabilityError
from bertology.model.siamese import PairTokens, split_pairs
from bertology.train.encoded import task_of
from bertology.train.ways.siamese import pair_tokens
from bertology.train.ways.way import Lesson, Pass, Way

_NAME = "superficial"
_SPREAD = 0.02  # of first weights
_RIDGE = 1e-6  # of the mean squared answer: answers of one batch may be all alike


@dataclass(frozen=True)
class Hex(Way):
    """Trained: everything, and beside it a superficial model, which is left behind.

    The superficial model knows bags of words: the means of the input embeddings of both texts, how
    these differ, and how many words of the second text the first one has. It learns the task by
    its own loss. The answers of the model to a batch, as a matrix of examples and classes, lose
    all that the superficial answers span, and the loss is that of what is left. So the model earns
    nothing by what a bag of words tells; what is saved is the model alone.
    """

    summary: ClassVar[str] = "what a bag of words predicts is projected out of the answers"
    order: ClassVar[int] = 6
    recordable: ClassVar[bool] = False  # solving equations waits for the device
    against: ClassVar[dict[str, str]] = {"adversarial": "each has a loss of its own"}

    def prepare(self, lesson: Lesson) -> None:
        """Put the superficial model beside the other, so that it is trained and kept with it."""
        task = task_of(lesson.train)
        tokens = pair_tokens(lesson, self.name)
        if task.kind != "classification":
            raise CapabilityError(f"The way 'hex' is for classes; {task.name!r} has none.")
        words = lesson.model.get_input_embeddings().weight.detach().clone()
        model = Superficial(words, len(task.labels), tokens)
        model.draw(lesson.generator(self))
        lesson.model.add_module(_NAME, model.to(words.device))

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """That of what is left, and that of the superficial model."""
        superficial: Superficial = getattr(lesson.model, _NAME)
        bias = superficial(inputs["input_ids"], inputs["attention_mask"])  # (B, C)
        # Detached: the superficial model must not learn to be projected out the less.
        with _answering_without(lesson.model, bias.detach()):
            left = plain(inputs, targets)
        return left + functional.cross_entropy(bias, targets)

    def finish(self, lesson: Lesson) -> None:
        """The model alone."""
        if hasattr(lesson.model, _NAME):
            delattr(lesson.model, _NAME)


@contextmanager
def _answering_without(model: nn.Module, bias: Tensor) -> Iterator[None]:
    """The model's answers lose what is spanned, whoever asks for them and computes a loss."""

    def project(module: nn.Module, given: Any, output: Any) -> Any:
        with torch.autocast(bias.device.type, enabled=False):  # equations need all digits
            output["logits"] = projected_out(output["logits"].float(), bias)
        return output

    handle = model.register_forward_hook(project)
    try:
        yield
    finally:
        handle.remove()


def projected_out(answers: Tensor, bias: Tensor) -> Tensor:
    """Answers (B, C) without what the columns of `bias` (B, C) span over the batch."""
    spanned = bias.T @ bias  # (C, C)
    ridge = _RIDGE * (spanned.diagonal().mean() + 1e-12)
    spanned = spanned + ridge * torch.eye(len(spanned), device=bias.device)
    shares: Tensor = torch.linalg.solve(spanned, bias.T @ answers)  # (C, C)
    return answers - bias @ shares


class Superficial(nn.Module):
    """A network over bags of words of both texts; their embeddings stay as they are."""

    words: Tensor

    def __init__(self, words: Tensor, classes: int, tokens: PairTokens) -> None:
        super().__init__()
        self.tokens = tokens
        self.register_buffer("words", words.float(), persistent=False)
        width = words.shape[1]
        self.inner = nn.Linear(4 * width + 2, width)
        self.outer = nn.Linear(width, classes)

    def draw(self, generator: torch.Generator) -> None:
        """First weights: small ones."""
        with torch.no_grad():
            for layer in (self.inner, self.outer):
                layer.weight.copy_(
                    torch.empty(layer.weight.shape).normal_(0.0, _SPREAD, generator=generator)
                )
                layer.bias.zero_()

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Rows of pairs (B, T) -> answers (B, classes)."""
        rows, inside = split_pairs(ids, mask, self.tokens)
        named = inside.bool() & (rows != self.tokens.first) & (rows != self.tokens.separator)
        shown = named[..., None] * self.words[rows]  # (2 B, T, width)
        u, v = (shown.sum(1) / named.sum(1, keepdim=True).clamp(min=1)).chunk(2)
        (one, other), (there, asked) = rows.chunk(2), named.chunk(2)
        known = ((other[:, :, None] == one[:, None]) & there[:, None]).any(-1) & asked  # (B, T)
        share = known.sum(1) / asked.sum(1).clamp(min=1)
        overlap = torch.stack([share, (share == 1).float()], dim=-1)
        bags = torch.cat([u, v, (u - v).abs(), u * v, overlap], dim=-1)
        answers: Tensor = self.outer(self.inner(bags).relu())
        return answers
