"""Trials of a task: models are trained on one split and scored on the corpus, another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from bertology.errors import DataError, ParameterError
from bertology.parameters import parameter
from bertology.studies.designs.trials import Trials
from bertology.studies.study import Needs

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import Start
    from bertology.train.ways import Way

BARS = 100  # steps of the progress bar for one run


@dataclass(frozen=True)
class TaskTrials(Trials):
    """Where the training data are, how models are fine-tuned on them, and what is refused."""

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "label"}), task=True)
    # Many models are trained: with all examples of the grammar a first try would take long.
    help_options: ClassVar[tuple[str, str]] = ("--limit 500 --train-limit 2000", "")

    epochs: int = parameter(3, "Passes over the training data.", minimum=1)
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    learning_rate: float | None = parameter(
        None,
        "The highest learning rate. If not given: 2e-5; 1e-4 for models less than 512 wide, 2e-4 "
        "for less than 256. Heads alone, adapters, LoRA and bias_only take 1e-3 whatever is given.",
        minimum=1e-9,
    )
    examples: int | None = parameter(
        None,
        "Learn from so many examples, drawn at random; all if not given.",
        minimum=2,
        option="train-limit",
    )
    max_length: int | None = parameter(None, "Cut texts to so many tokens.", minimum=3)
    train: str = parameter("", "Other data to learn from; if not given, those of the corpus.")
    train_split: str = parameter("train", "The split to learn from.")

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """There must be other data to learn from, and they must have the same task."""
        from bertology.train.encoded import task_of
        from bertology.train.starts import STARTS, begin
        from bertology.train.tuning import check_apart

        task, train = task_of(corpus), self.load_train(corpus)
        trained = task_of(train)
        if (trained.kind, trained.labels) != (task.kind, task.labels):
            must = f"have the task of the corpus ({task.name!r})"
            raise ParameterError("train", type(self).__name__, must, trained.name)
        check_apart(train, corpus)
        begin(encoder, task, STARTS["pretrained"], seed=0)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The training data: another file under the same name is another study."""
        return {"training_data": self.load_train(corpus).fingerprint}

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Per cent of the run."""
        return BARS

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those that are learnt from, and those that are scored."""
        return [*self.load_train(corpus).texts, *corpus.texts]

    def cut_at(self, encoder: Encoder) -> int | None:
        """What was asked for, or else as many tokens as the model takes."""
        return self.max_length or encoder.max_length

    def load_train(self, corpus: Corpus) -> Corpus:
        """What is learnt from."""
        from bertology.data.loading import load_split

        return load_split(corpus, self.train_split, other=self.train, limit=self.examples)

    def settings(
        self, start: Start, hidden: int, seed: int, ways: Sequence[Way] = ()
    ) -> FinetuneSettings:
        """How a model of this width is fine-tuned from a start."""
        return tuning_settings(self, start, hidden, seed, ways)


def same_training_data(measured: Mapping[str, xr.Dataset]) -> None:
    """Refuse parts that learnt from different data."""
    if len({part.attrs["train_fingerprint"] for part in measured.values()}) > 1:
        raise DataError(
            "The training data changed between two parts of this study.",
            hint="Do all of it again with force=True (--force).",
        )


class Recipe(Protocol):
    """What a study that fine-tunes has as parameters."""

    @property
    def epochs(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def learning_rate(self) -> float | None: ...
    @property
    def max_length(self) -> int | None: ...


def tuning_settings(
    recipe: Recipe, start: Start, hidden: int, seed: int, ways: Sequence[Way] = ()
) -> FinetuneSettings:
    """How a model of this width is fine-tuned from a start.

    Heads alone, and ways that train few weights, have their usual rate, whatever is given.
    """
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import default_rate

    rate = recipe.learning_rate
    few = any(way.usual_rate is not None for way in ways)
    if rate is None or start.learns == "head" or few:
        rate = default_rate(start, hidden, ways)
    return FinetuneSettings(
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        learning_rate=rate,
        seed=seed,
        max_length=recipe.max_length,
        ways=tuple(ways),
    )
