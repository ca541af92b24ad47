"""What a study is: measured part by part on a model, then concluded without one.

A study is a frozen dataclass whose fields are its parameters. `measure` does the work that needs
the model and returns labelled arrays, one part at a time; parts are pure functions of (model,
corpus, parameters), so an engine may run them anywhere, in any order, and skip those that are
already in the store. `conclude` turns the measured parts into a Result: statistics only.

Study modules never import torch when they are imported (a test holds this): a stored result is
rendered by the study's own Result class on machines without torch, and `--help` stays fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from bertology.parameters import check_parameters

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus, Task
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.results.compared import Compared
    from bertology.results.provenance import Provenance
    from bertology.results.result import Result
    from bertology.stats import Estimate

TEXTS, TASK = "(texts)", "(task)"
"""In `Study.compared_over`: the texts of a report, and the data of the task that models learnt."""


@dataclass(frozen=True)
class Needs:
    """What must be there before any work starts."""

    capabilities: frozenset[str] = frozenset()  # names of model.families.Capability
    fields: frozenset[str] = frozenset()  # names of data.corpus.Field
    head: str = "base"  # the model head: base, mlm, pretraining, classification, …; saved: any
    task: bool = False  # whether the corpus must have a task


MAPS_OF_TEXTS = Needs(capabilities=frozenset({"patterns"}), fields=frozenset({"text"}))
"""What most studies of attention need."""


@dataclass
class Context:
    """How the work is carried out; nothing in here but `others` changes a number."""

    batch_tokens: int = 4096
    others: Mapping[str, Encoder] = field(default_factory=dict)
    """The models that parameters declared with `model=True` name, by parameter."""
    advance: Callable[[int], None] = field(default=lambda steps: None)
    """Tells the progress bar that `steps` of `Study.steps(…)` are done."""
    states: Path | None = None
    """The folder where states of words are kept; None: they are not kept after the part."""
    trained: Path | None = None
    """The folder where models that parts train, and masks, are kept; None: as for states."""


class ReadWhileMeasuringError(RuntimeError):
    """A bug in a study: it measures by a parameter that is declared only to conclude."""

    def __init__(self, study: str, name: str) -> None:
        super().__init__(
            f"{study} reads {name!r} while it measures, but declares it with concludes=True: what "
            "was measured would be taken for other values of it too. Take the declaration away, "
            "or read it in `conclude` only."
        )


@dataclass(frozen=True)
class Question:
    """Parameters that are checked, a version, and a kind of result: what studies and joins share.

    The docstring of a subclass is what users read: the question in one line, then Method, Source
    and Limits.
    """

    version: ClassVar[int] = 1
    result_type: ClassVar[type[Result]]

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters as plain JSON values; part of the identity of a result."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def result(
        self,
        provenance: Provenance,
        tables: Mapping[str, pd.DataFrame],
        *,
        evidence: Mapping[str, Estimate | None] | None = None,
        reasons: Mapping[str, str] | None = None,
        facts: Mapping[str, object] | None = None,
        arrays: xr.Dataset | None = None,
        compared: Sequence[Compared | None] = (),
    ) -> Result:
        """The result of what was concluded; see `results/evidence.py` for `evidence` and `reasons`.

        `facts` are single numbers and words that figures need; the parameter `level` is always
        among them. `compared` are the numbers by which two models are set side by side. What is
        None was not measured.
        """
        from bertology.results.compared import compared_arrays
        from bertology.results.evidence import evidence_array

        found = {name: e for name, e in (evidence or {}).items() if e is not None}
        kept = evidence_array(found, reasons)
        kept = kept if arrays is None else arrays.merge(kept, combine_attrs="drop_conflicts")
        kept = kept.merge(compared_arrays([one for one in compared if one is not None]))
        level = {"level": level} if (level := getattr(self, "level", None)) is not None else {}
        kept.attrs = {**level, **(facts or {})}
        return self.result_type(provenance, dict(tables), kept)


@dataclass(frozen=True)
class Study(Question):
    """Subclass it in a file of a topic folder, decorated with @dataclass(frozen=True).

    The file name is the study's name (`head_ablation.py` is `head-ablation`) and the class is its
    CamelCase form (`HeadAblation`). A larger study is a folder whose `__init__.py` holds the class.
    Shapes of experiments to build on are in `designs/`.

    `version` counts what is concluded, `measured_version` what is measured: where only the first is
    raised, results are concluded again from what was measured.

    A study that needs no fields of a corpus may get None in place of one.
    """

    measured_version: ClassVar[int] = 1
    needs: ClassVar[Needs] = Needs()
    help_options: ClassVar[tuple[str, str]] = ("", "")
    """Options that the two examples of --help need: the bundled model, one of the hub."""
    standard: ClassVar[bool] = False
    """Whether `bertology report --measure` runs it: quick, on any model and text."""
    compared_over: ClassVar[tuple[str, ...]] = ()
    """Data over which `report --measure --compare` asks it of both models: names of corpora, TEXTS
    or TASK (TEXTS where no task is known and none is needed). Standard ones are asked anyway."""
    by_words: ClassVar[bool] = False
    """Whether other models are compared word by word: build and tokenizer may then be others."""
    trains_models: ClassVar[bool] = False
    """Whether it trains models of its own: `verify` then runs it only where its claim is named."""
    timed_parts: ClassVar[frozenset[str]] = frozenset()
    """Parts that time something: done one by one when all others are, so that nothing runs beside
    them."""

    @property
    def measuring_parameters(self) -> dict[str, Any]:
        """The parameters that decide what is measured, as plain JSON values."""
        concluding = concluding_parameters(type(self))
        return {
            f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name not in concluding
        }

    def measuring(self) -> Self:
        """This study as it measures: parameters that only conclude cannot be read."""
        own: type[Study] = type(self)
        made: Self = object.__new__(_measuring_kind(own))
        made.__dict__.update(self.__dict__)
        return made

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """Parameters with which no more is done than these quantities of the evidence need."""
        return {}

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """What else decides numbers, such as bundled weights or other data: name and fingerprint.

        It is part of a job's identity, so that better weights do not find old results.
        """
        return {}

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse, before any work, parameters that do not fit this model and corpus."""

    def task_for(self, encoder: Encoder, corpus: Corpus) -> Task | None:
        """The task in the labels that the model is asked; those of the corpus if not overridden."""
        return corpus.task

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """The texts that a model reads, to count those that are cut; all of them if not overridden.

        None where texts are not read one by one, and so not cut.
        """
        return corpus.texts

    def cut_at(self, encoder: Encoder) -> int | None:
        """The tokens that a text is cut to: as many as the model takes, if not overridden."""
        return encoder.max_length

    def tokens_on_gpu(self, shape: Shape) -> int:
        """Tokens in one batch on an accelerator, where the user does not say."""
        return Context.batch_tokens

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Names of the independent parts of the work; one part when not overridden."""
        return ["all"]

    def plan(self, encoder: Encoder, corpus: Corpus) -> Sequence[str]:
        """The parts as they suit the model's device; `parts` if not overridden."""
        return self.parts(encoder.shape, corpus)

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """How many steps `measure` will report for this part, for the progress bar."""
        return 1

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Do one part of the work; the same model, corpus and parameters give the same numbers."""
        raise NotImplementedError

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Turn all measured parts into the result. Needs no model."""
        raise NotImplementedError


def concluding_parameters(kind: type[Study]) -> frozenset[str]:
    """The parameters that only decide what is concluded of what was measured."""
    return frozenset(f.name for f in fields(kind) if f.metadata.get("concludes"))


class _Closed:
    """A field that cannot be read; it comes before the value in the instance."""

    def __init__(self, study: str, name: str) -> None:
        self._study, self._name = study, name

    def __get__(self, instance: object, owner: type[object]) -> NoReturn:
        raise ReadWhileMeasuringError(self._study, self._name)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise ReadWhileMeasuringError(self._study, self._name)


_MEASURING_KINDS: dict[type, Any] = {}


def _measuring_kind(kind: type[Study]) -> Any:
    if kind not in _MEASURING_KINDS:
        _MEASURING_KINDS[kind] = _closed_kind(kind)
    return _MEASURING_KINDS[kind]


def _closed_kind(kind: type[Study]) -> type[Study]:
    closed = {name: _Closed(kind.__name__, name) for name in concluding_parameters(kind)}
    if not closed:
        return kind
    open_ones = tuple(f.name for f in fields(kind) if f.name not in closed)

    def known(self: Study) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in open_ones)

    # Studies that measure the same are equal while they measure: some keep what all parts share.
    own = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__eq__": lambda self, other: type(self) is type(other) and known(self) == known(other),
        "__hash__": lambda self: hash(known(self)),
    }
    return type(kind.__name__, (kind,), {**closed, **own})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in sorted(value.items())}
    return value
