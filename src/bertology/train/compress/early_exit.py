"""Early exit: easy texts leave after a lower layer, with the answer of a head there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ParameterError
from bertology.model.compressed.early_exit import (
    add_exits,
    all_logits,
    exits_of,
    set_entropy,
)
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import EXITS, ONE_EPOCH, Method
from bertology.train.compress.work import Work
from bertology.train.encoded import encode, learnable
from bertology.train.fit import row_limit
from bertology.train.ways import Lesson, Pass, Way

_EXITS = ".early_exits."
_ROWS = 32  # in one pass
_CHANGED = 0.02  # of training answers


@dataclass(frozen=True)
class EarlyExit(Method):
    """Heads are added to some layers and trained alone, the rest of the model is as it was.

    A text leaves at the first head whose answer has an entropy (in nats) below a limit. So the
    model is no smaller, a little larger; it saves time where texts are read one by one. How sure
    heads of lower layers are depends on model and task, so the limit is found on training examples
    that heads do not learn from.
    """

    summary: ClassVar[str] = "sure answers leave after a lower layer, by heads that are trained"
    source: ClassVar[str] = "Xin et al. 2020"
    against: ClassVar[dict[str, str]] = {
        "token_elimination": "rows and tokens cannot both be left out",
        "factorised": "exits belong to layers of their own",
    }

    exits: int = parameter(3, "How many layers have a head; fewer if there are fewer.", minimum=1)
    changed: float | None = parameter(
        None,
        "The share of training answers that may become others, 0.02 if neither this nor entropy is "
        "given; of new texts it is often more.",
        minimum=0,
        maximum=1,
    )
    entropy: float | None = parameter(
        None, "A text leaves below this entropy of its answer, whatever that changes.", minimum=0
    )
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.changed is not None and self.entropy is not None:
            must = "be left out where entropy is given"
            raise ParameterError("changed", self.name, must, self.changed)

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
            work.encoder.model, layers=places, entropy=self.entropy or 0.0, generator=generator
        )
        work.say(f"exits after layers {', '.join(str(i + 1) for i in places)} of {count}")
        found = work.around(model)
        learnt = work.train if self.entropy is not None else _beside_choosing(work)
        work.train_on(found, ways=(Exits(),), epochs=self.epochs, on=learnt)
        answers = _answers(work, found)
        if self.entropy is None:
            most = _CHANGED if self.changed is None else self.changed
            set_entropy(model, highest_limit(answers, most))
        _say_how_far(work, model, answers, [place + 1 for place in places] + [count])
        return found


def _beside_choosing(work: Work) -> Corpus:
    """Training examples but those that choose the limit: a head is too sure of what it learnt."""
    chosen = {e.texts for e in work.choosing}
    rest = [e for e in work.train if e.texts not in chosen]
    return replace(work.train, examples=rest or list(work.train), origin={})


def _answers(work: Work, found: Encoder) -> NDArray[np.float64]:
    """(exits and the end, examples, labels): what each says of some training examples."""
    limit = row_limit(found.model, found.tokenizer, work.settings.max_length)
    rows, said = encode(work.choosing, found.tokenizer, limit), []
    found.model.eval()
    with torch.no_grad():
        for start in range(0, len(rows), _ROWS):
            chosen = range(start, min(start + _ROWS, len(rows)))
            inputs, _ = rows.batch(list(chosen), found.device)
            said.append(torch.stack(all_logits(found.model, **inputs)).double().softmax(-1).cpu())
    return np.asarray(torch.cat(said, dim=1))


def _left(answers: NDArray[np.float64], limit: float) -> NDArray[np.intp]:
    """(examples,): at which exit each leaves, the end included."""
    sure = _entropies(answers) < limit
    sure[-1] = True
    return np.asarray(sure.argmax(axis=0))


def _entropies(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-(answers * np.log(np.maximum(answers, 1e-300))).sum(-1))


def highest_limit(answers: NDArray[np.float64], share: float) -> float:
    """The highest entropy up to which no limit changes more than a share of the answers.

    `answers` are probabilities: (exits and the end, examples, labels).
    """
    said = answers.argmax(-1)  # (exits and the end, examples)
    examples = np.arange(answers.shape[1])
    most = float(np.log(answers.shape[2]))  # no answer is less sure
    best = 0.0
    for limit in np.linspace(0, most, 201)[1:]:
        changed = (said[_left(answers, limit), examples] != said[-1]).mean()
        if changed > share:
            break
        best = float(limit)
    return best


def _say_how_far(
    work: Work, model: Any, answers: NDArray[np.float64], layers: Sequence[int]
) -> None:
    limit = exits_of(model).passage.entropy
    mean = np.array(layers)[_left(answers, limit)].mean()
    work.say(
        f"texts leave below an entropy of {limit:.3g}: after {mean:.1f} of {layers[-1]} layers, "
        f"in the mean of {answers.shape[1]:,} training examples"
    )


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
