"""The plan of a paper as data, and the steps that come of it for given options and data.

In `paper.yaml`, the field `plan` has these parts (those of `sections/*.yaml` add to them):

    tasks: [mrpc, rte]              # used where the reader names none; left out if there are none
    languages: [de, ja]             # likewise, for steps that are done for each language
    small_for: grammar*             # corpora that get the small settings; all others get the full
    settings:                       # values that steps use as $NAME
      examples: {full: 1000, small: 200, option: examples}
    corpora:                        # by a name of your own: the first that is on this machine
      links: [{corpus: ud-ewt, limit: $examples}, {corpus: grammar, limit: 600}]
    steps: [...]                    # in the order in which they are done

A setting has a `full` value (as in the paper) and may have a `small` one. Where the reader gives
the `option` of that name (examples, train_examples, epochs, seeds), it takes their place. `fit`
names a function of this module that adapts the value, also a reader's, to the model. Null means: no
limit, or the default. `$train_split` is the split that a task learns from.

With `--quick` all data get the small values, and numbers of examples (`option` examples or
train_examples, and limits of corpora) a quarter of them. Where that is too few or still too many, a
setting or a corpus has a value `quick` of its own.

A corpus may have `limit`, `quick`, `split`, `languages` (of one in several, those that are read),
`parameters` (given to the studies over it), and `per_example`: where the reader gives `--limit N`,
at most that many times N texts are used. Where
the reader names neither tasks nor a folder of data, the last corpus is used, so that the run is the
same on every machine. Two steps that are the same by then are done once.

A step is one of these; only the first field is needed, and `over` outside of `for_each_task`:

    - {study: NAME, over: CORPUS, parameters: {...}, fine_tuned: true, base_model_as: PARAMETER}
    - {finetune: {epochs: $epochs, batch_size: 32, learning_rate: null, seed: 0}}
    - {combine: NAME, of: [STUDY, ...], needs: [STUDY, ...], over: TITLE, min_tasks: 2}
    - {steps: STUDY, measure: QUANTITY, over: CORPUS, parameters: {...}}
    - for_each_task: {use: {limit: $examples, train_limit: null}, steps: [...]}
    - for_each_language: {over: CORPUS, steps: [...]}

`fine_tuned` runs a study on the model that this task's `finetune` made; `base_model_as` gives it
the model before fine-tuning as that parameter. `use` says how much of the task is read; a step may
have its own. `combine` takes the results of the studies `of`: in `for_each_task` those of the task
where it has them, else all before it. It is left out where a result that it `needs` was not made,
and where there are fewer than `min_tasks` tasks. `for_each_language` runs studies over the texts of
one language after the other, of a corpus in several. `steps` runs a study at every training step
that the model kept, and makes the curve of one of its measures (the join `training-steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bertology.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from bertology.model.shape import Shape
    from bertology.reproduce.plan import ReproductionOptions

TRAIN_SPLIT = "train_split"  # the one value that is no setting: it depends on the task
_NARROW = 512
_COUNTS = ("examples", "train_examples")
_OPTIONS = (*_COUNTS, "epochs", "seeds")
_SAME = "same as full"
_SHARE = "a share of small"
_QUICK = 4  # one example of so many is read with --quick


def quick_share(value: object) -> object:
    """How many examples of so many --quick reads."""
    return -(-value // _QUICK) if isinstance(value, int) else value


def narrow_models_only(value: object, shape: Shape) -> object:
    """The value for models of a hidden size below 512; others have their default."""
    return value if shape.hidden < _NARROW else None


def enough_to_prune(value: int | None, shape: Shape) -> int | None:
    """At least 200 examples to learn from: some of them are held out, to decide how far to go."""
    return value if value is None else max(value, 200)


def enough_to_cross(value: int, shape: Shape) -> int:
    """At least three seeds of each kind: with fewer, no variance by seed can be told."""
    return max(value, 3)


def enough_to_teach(value: int | None, shape: Shape) -> int | None:
    """At least 100 examples to learn from: some are held out, and studies refuse fewer."""
    return value if value is None else max(value, 100)


def at_most_half_of_the_heads(value: Sequence[int], shape: Shape) -> tuple[int, ...]:
    """Those numbers of heads that are at most half of the model's."""
    return tuple(n for n in value if 2 * n <= shape.layers * shape.heads)


_FITS: Mapping[str, Callable[[Any, Shape], object]] = {
    fit.__name__: fit
    for fit in (
        narrow_models_only,
        at_most_half_of_the_heads,
        enough_to_cross,
        enough_to_prune,
        enough_to_teach,
    )
}


@dataclass(frozen=True)
class Setting:
    """A value by level of effort, and the option of the reader that takes its place."""

    full: object
    small: object = _SAME
    quick: object = _SHARE
    option: str | None = None
    fit: str | None = None

    def __post_init__(self) -> None:
        if self.option is not None and self.option not in _OPTIONS:
            raise UnknownNameError("option", self.option, _OPTIONS)
        if self.fit is not None and self.fit not in _FITS:
            raise UnknownNameError("way to fit a setting", self.fit, _FITS)

    def value(self, small: bool, options: ReproductionOptions, shape: Shape) -> object:
        """What it is for a corpus, the reader's options and a model."""
        given = None if self.option is None else getattr(options, self.option)
        small = (small or options.quick) and self.small != _SAME
        chosen = self.small if small else self.full
        if options.quick and self.quick != _SHARE:
            chosen = self.quick
        elif options.quick and self.option in _COUNTS:
            chosen = quick_share(chosen)
        chosen = chosen if given is None else given
        chosen = tuple(chosen) if isinstance(chosen, list) else chosen
        return chosen if self.fit is None else _FITS[self.fit](chosen, shape)


@dataclass(frozen=True)
class CorpusData:
    """A corpus that studies without a task read."""

    corpus: str
    split: str = "validation"
    limit: object = None
    quick: int | None = None
    per_example: int | None = None
    languages: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Use:
    """How much of a task is read."""

    limit: object = None
    train_limit: object = None


@dataclass(frozen=True)
class TrainingValues:
    """How a model is fine-tuned."""

    epochs: object = 3
    batch_size: object = 32
    learning_rate: object = None
    seed: object = 0


@dataclass(frozen=True)
class FineTuneData:
    """Fine-tune the model on the task."""

    finetune: TrainingValues
    use: Use | None = None


@dataclass(frozen=True)
class StudyData:
    """Run a study."""

    study: str
    over: str | None = None
    fine_tuned: bool = False
    base_model_as: str | None = None
    use: Use | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class CombineData:
    """Make one result of several."""

    combine: str
    of: tuple[str, ...]
    needs: tuple[str, ...] = ()
    over: str = "all"
    min_tasks: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class StepsData:
    """Run a study at every training step that the model kept, and draw a measure of it."""

    steps: str
    measure: str
    over: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskSteps:
    """Steps that are done for each task."""

    steps: tuple[StepData, ...]
    use: Use = field(default_factory=Use)


@dataclass(frozen=True)
class LanguageSteps:
    """Studies that are run over each language of a corpus."""

    over: str
    steps: tuple[StepData, ...]

    def __post_init__(self) -> None:
        for step in self.steps:
            if not isinstance(step, StudyData) or step.over is not None:
                must = "be studies that name no corpus of their own"
                raise ParameterError("steps", "for_each_language", must, step)


StepData = FineTuneData | StudyData | CombineData | StepsData | TaskSteps | LanguageSteps


@dataclass(frozen=True)
class Condition:
    """When a note is shown. It chooses tasks by their name, or by a setting; or asks for a corpus.

    `task` is a pattern such as grammar*. `setting` is compared: `below` a number, or `unlike`
    another setting. `corpus` is a name of the plan's corpora, and `named` the corpus that it is.
    """

    task: str | None = None
    sample: bool = False
    setting: str | None = None
    below: float | None = None
    unlike: str | None = None
    corpus: str | None = None
    named: str | None = None


@dataclass(frozen=True)
class Note:
    """Something that differs from the paper: always, or where a condition is met.

    `{tasks}` stands for the tasks that meet it, `{NAME}` for a setting of theirs.
    """

    text: str
    when: Condition | None = None


@dataclass(frozen=True)
class PaperPlan:
    """The plan of a paper, as its file has it."""

    steps: tuple[StepData, ...]
    tasks: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    small_for: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    corpora: Mapping[str, tuple[CorpusData, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {*self.settings, TRAIN_SPLIT}
        for name in _references((self.steps, [*self.corpora.values()])):
            if name not in known:
                raise UnknownNameError("setting", f"${name}", [f"${k}" for k in known])
        for name, choices in self.corpora.items():
            if not choices:
                raise ParameterError("corpora", "a plan", "name one corpus at least", name)
        for step in self.steps:
            if (
                isinstance(step, StudyData | StepsData | LanguageSteps)
                and step.over not in self.corpora
            ):
                raise UnknownNameError("corpus of the plan", str(step.over), self.corpora)
            if isinstance(step, FineTuneData):
                raise ParameterError("finetune", "a plan", "be in for_each_task", "a step outside")

    @property
    def in_languages(self) -> bool:
        """Whether some of it is done for each language."""
        return any(isinstance(step, LanguageSteps) for step in self.steps)


def _references(value: object) -> Iterator[str]:
    """Names of the settings that anything in the plan refers to."""
    if isinstance(value, str) and value.startswith("$"):
        yield value[1:]
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _references(inner)
    elif hasattr(value, "__dataclass_fields__"):
        yield from _references(vars(value))
