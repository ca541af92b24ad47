"""The rows of a table of compression: methods as they are written, and what was published of them.

A row is a name of `ROWS`, which fits its method to the size of the model, or methods as
`bertology compress` takes them, several of them joined by `+`: `layer_choice:layers=6+int8`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bertology.data.command_words import nearby, reading_words
from bertology.errors import ParameterError
from bertology.results.provenance import short_model

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.studies.designs.task_trials import TaskTrials


_PERMISSIONS = ("allow_pickle", "trust_remote_code")
_USUAL = {"epochs": 3, "batch-size": 32, "train-split": "train"}  # of both commands


def told_of(encoder: Encoder, corpus: Corpus) -> dict[str, str]:
    """What commands must say of the model and of the data, as attributes of a part.

    Nothing is told of a model or of data that were made in Python, or of a model in another type of
    number: no command can name them.
    """
    from bertology.model.loading.saved_head import saved_head

    spec = encoder.spec or {}
    model: dict[str, object] = {}
    if spec and spec.get("dtype", "float32") == "float32":
        allowed = [name for name in _PERMISSIONS if spec.get(name)]
        headed = saved_head(str(spec["name"])) == "classification"
        model = {"name": spec["name"], "flags": allowed + ["finetune"] * headed}
    return {"model": json.dumps(model), "data": json.dumps(dict(corpus.origin), default=str)}


def row_command(row: Row, told: Mapping[str, object], study: TaskTrials) -> str:
    """What makes the row's model of the first seed; another `--seed` makes that of another one.

    `told` are the attributes of one of its parts. Empty where no command can say it.
    """
    model, origin = (json.loads(str(told.get(name, "{}"))) for name in ("model", "data"))
    name, data = reading_words(origin)
    if not (model and name) or (study.train and "only" in origin):
        return ""
    tuned = row.kind in (TEACHER, SMALL)
    task = study.train or name
    start = ["finetune", _model_name(row, model), task] if tuned else [
        "compress", _model_name(row, model), "--task", task,
        *(word for text in row.methods for word in ("--method", text)),
    ]  # fmt: skip
    said = {
        "validation": name if study.train else None,
        "epochs": study.epochs,
        "batch-size": study.batch_size,
        "rate": study.learning_rate,
        "max-length": study.max_length,
        "limit": study.examples,
        "validation-limit": data.pop("--limit", None),
        "train-split": study.train_split,
    }
    words = ["bertology", *start]
    for option, value in said.items():
        if value is not None and value != _USUAL.get(option):
            words += [f"--{option}", str(value)]
    words += [word for pair in data.items() for word in pair]
    words += [f"--{flag.replace('_', '-')}" for flag in _flags(row, model, tuned=tuned)]
    return shlex.join([*words, "--seeds" if tuned else "--seed", "0", "--to", row.name])


def _model_name(row: Row, model: Mapping[str, object]) -> str:
    return nearby(row.text if row.kind == SMALL else str(model["name"]))


def _flags(row: Row, model: Mapping[str, list[str]], *, tuned: bool) -> list[str]:
    """How the model is loaded; `bertology finetune` needs no word to fine-tune."""
    flags = [] if row.kind == SMALL else model["flags"]
    return [flag for flag in flags if not (tuned and flag == "finetune")]


TEACHER, METHOD, ALONE, SMALL = "teacher", "method", "alone", "small"  # kinds of rows
_NAMED = re.compile(r"\{\w+\}")  # numbers that depend on the model
_SHAPE = ("layers", "heads", "hidden", "intermediate")
_RANDOM, _EVEN = "random", "even"  # how a student may begin, and which layers it usually takes
# Their students have the teacher's tokens, so that the same shape alone is the same size.
_STUDENTS = ("soft_labels", "patient", "tiny", "minilm", "theseus", "distil_text")


class Published(NamedTuple):
    """A row of Table 1 of the Primer: figures of another model, on other tasks and machines."""

    source: str
    smaller: str
    kept: str
    faster: str
    evaluated: str


@dataclass(frozen=True)
class Row:
    """One row: its name in tables and quantities, and the methods that make its model."""

    name: str
    title: str
    text: str = ""
    """Methods, joined by `+`; of models that are fine-tuned as they are, the model."""
    kind: str = METHOD
    published: Published | None = None
    classes_only: bool = False
    """Whether it cannot be done where answers are numbers."""
    saves: str = "fewer"
    """The column that tells how much less it is: parameters (`fewer`), bytes where numbers have
    fewer bits (`smaller`), parameters that are not zero where they are zeroed (`nonzero`)."""
    alone: tuple[str, ...] = ()
    """Names of the rows of the same shape without a teacher."""

    @property
    def quantity(self) -> str:
        """How names of quantities begin."""
        return re.sub(r"\W+", "_", self.name)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, as they are applied."""
        from bertology.train.written_options import apart

        return apart(self.text)

    def filled(self, values: Mapping[str, int]) -> Row:
        """With numbers in place of {names}, as they suit the model."""
        from bertology.train.written_options import filled

        text = filled(self.text, values, parameter="methods", of="CompressionTable")
        return replace(self, text=text)


_SMALLER_GLUE = "no WNLI, CoLA, STS-B; RACE"
_ROWS = (
    Row("pkd-half", "BERT-PKD, half of the layers", "patient:layers={half},which=first",
        published=Published("Sun et al. 2019a (BERT6-PKD)", "1.6", "98", "1.9", _SMALLER_GLUE)),
    Row("pkd-quarter", "BERT-PKD, a quarter of the layers", "patient:layers={quarter},which=first",
        published=Published("Sun et al. 2019a (BERT3-PKD)", "2.4", "92", "3.7", _SMALLER_GLUE)),
    Row("distilbert", "DistilBERT's loss on the task's texts", "distil_text:layers={half}",
        published=Published("Sanh et al. 2019a", "1.5", "90", "1.6", "all GLUE tasks, SQuAD")),
    Row("bert-192", "small vocabulary, a quarter as wide",
        "small_vocabulary:hidden={w4},heads={heads}",
        published=Published("Zhao et al. 2019 (BERT-192)", "5.7", "93", "22", "MNLI, MRPC, SST-2")),
    Row("bert-48", "small vocabulary, a sixteenth as wide",
        "small_vocabulary:hidden={w16},heads={heads}",
        published=Published("Zhao et al. 2019 (BERT-48)", "62", "87", "77", "MNLI, MRPC, SST-2")),
    Row("tinybert", "TinyBERT's stages on the task",
        "tiny:layers={third},hidden={narrow},heads={heads}",
        published=Published("Jiao et al. 2019", "7.5", "96", "9.4", "no WNLI; SQuAD")),
    Row("minilm-half", "MiniLM's relations on the task", "minilm:layers={half}",
        published=Published("Wang et al. 2020b", "1.65", "99", "2",
                            "no WNLI, STS-B, MNLI-mm; SQuAD")),
    Row("bilstm-soft", "BiLSTM over static vectors", "bilstm",
        published=Published("Tang et al. 2019", "110", "91", "434 (of BERT-large)",
                            "MNLI, QQP, SST-2")),
    Row("q-bert", "mixed precision by Hessian", "mixed_precision",
        saves="smaller",
        published=Published("Shen et al. 2019 (Q-BERT-MP)", "13", "98 (of the dev set)", "",
                            "MNLI, SST-2, CoNLL-03, SQuAD")),
    Row("q8bert", "8-bit aware training", "int8_aware",
        saves="smaller",
        published=Published("Zafrir et al. 2019 (BERT-QAT)", "4", "99", "",
                            "no WNLI, MNLI; SQuAD")),
    Row("gobo", "dictionary of centroids, outliers kept", "dictionary",
        saves="smaller",
        published=Published("Zadeh and Moshovos 2020", "9.8", "99", "", "MNLI")),
    Row("mccarley", "half of the heads and MLPs cut", "heads_and_mlps:heads=0.5,mlps=0.5",
        published=Published("McCarley et al. 2020 (ff2)", "2.2 (of BERT-large)",
                            "98 (of BERT-large)", "1.9 (of BERT-large)",
                            "SQuAD, Natural Questions")),
    Row("mvp", "movement pruning to 3 %", "movement:weights=0.03",
        saves="nonzero",
        published=Published("Sanh et al. 2020 (Soft MvP)", "33", "94 (of the dev set)", "",
                            "MNLI, QQP, SQuAD")),
    Row("imp", "magnitude pruning, rewound, 50 %", "rewound:weights=0.5",
        saves="nonzero",
        published=Published("Chen et al. 2020 (IMP, rewind 50 %)", "1.4-2.5", "94-100", "",
                            "no MNLI-mm; SQuAD")),
    Row("albert", "table of low rank, all layers one", "factorised:rank={w4}",
        published=Published("Lan et al. 2020b (ALBERT-base)", "9", "97", "", "MNLI, SST-2")),
    Row("theseus-half", "BERT-of-Theseus, half of the layers",
        "theseus:layers={half},which=first",
        published=Published("Xu et al. 2020", "1.6", "98", "1.9", "no WNLI")),
    Row("power-bert", "tokens left out layer by layer", "token_elimination",
        published=Published("Goyal et al. 2020", "", "99", "2-4.5", "no WNLI; RACE")),
    Row("soft-half", "soft labels, half of the layers", "soft_labels:layers={half},which=first"),
    Row("soft-quarter", "soft labels, a quarter of the layers",
        "soft_labels:layers={quarter},which=first"),
    Row("soft-half-int8", "soft labels, half of the layers, 8 bits",
        "soft_labels:layers={half},which=first+int8", saves="smaller"),
    Row("16-bit", "stored in 16 bits", "half", saves="smaller"),
    Row("dynamic-8-bit", "8 bits, not trained", "int8", saves="smaller"),
    Row("low-rank", "maps of low rank, half of the weights", "low_rank:share=0.5"),
    Row("magnitude-50", "gradual magnitude pruning, 50 %", "magnitude:weights=0.5",
        saves="nonzero"),
    Row("layers-chosen", "half of the layers, trained on", "layer_choice"),
    Row("layers-dropped", "LayerDrop, cut to half", "layer_drop"),
    Row("early-exit", "early exit", "early_exit", classes_only=True),
)  # fmt: skip
ROWS: dict[str, Row] = {row.name: row for row in _ROWS}


def read_rows(given: Sequence[str], shape: Shape | None = None) -> list[Row]:
    """Rows from names or from methods as they are written; filled in where the shape is known."""
    from bertology.train.written_options import plain_name, separated

    found = [
        ROWS.get(text) or Row(plain_name(text), text, _written(text)) for text in separated(given)
    ]
    names = [row.name for row in found]
    if not found or len(set(names)) < len(names):
        must = f"be some of {', '.join(ROWS)}, or methods of `bertology compress`, none twice"
        raise ParameterError("methods", "CompressionTable", must, list(given))
    return found if shape is None else [row.filled(_values(shape)) for row in found]


def _written(text: str) -> str:
    """Methods joined by `+`, of which some may be names of rows."""
    from bertology.train.written_options import apart

    return "+".join(ROWS[one].text if one in ROWS else one for one in apart(text))


def _values(shape: Shape) -> dict[str, int]:
    """What {names} stand for: shares of the layers, and widths that heads divide."""
    heads, width = shape.heads, shape.hidden
    widths = {"w4": 1 / 4, "w16": 1 / 16, "narrow": 312 / 768}
    return {
        **{n: max(1, shape.layers // k) for n, k in (("half", 2), ("third", 3), ("quarter", 4))},
        **{n: heads * max(1, round(share * width / heads)) for n, share in widths.items()},
        "heads": heads,
    }


def named_files(rows: Iterable[Row]) -> dict[str, str]:
    """Fingerprints of what methods read beside the data: texts, models that students begin with."""
    from bertology.train.compress import read_methods

    return {
        f"{row.name} {name}": content
        for row in rows
        for method in read_methods(replace(row, text=_NAMED.sub("1", row.text)).methods)
        for name, content in method.ingredients().items()
    }


def alone_rows(rows: Iterable[Row], starts: Sequence[str], epochs: int) -> list[Row]:
    """The rows, those of students with the names of their baselines, and then the baselines.

    A baseline has the shape of its students, and is trained as long as the longest of them, stages
    before included. It begins with the same layers as they do, or at random. Students that begin
    with a small pre-trained model have that model itself, fine-tuned as it is.
    """
    from bertology.train.compress import read_methods

    found, baselines = list[Row](), dict[_Baseline, int]()
    for row in rows:
        methods = read_methods(row.methods)
        one: Any = methods[0]
        student = len(methods) == 1 and one.name in _STUDENTS
        shape = tuple(getattr(one, n) for n in _SHAPE) if student else ()
        if student and one.own_model is not None:
            shape = (one.own_model,)
        if any(n is not None for n in shape):
            long = (one.epochs or epochs) + one.epochs_before
            # One for each start also where all are the same: baselines are compared in this order.
            own = [_Baseline(start, shape, _EVEN if start == _RANDOM else one.which)
                   for start in starts]  # fmt: skip
            for baseline in own:
                baselines[baseline] = max(long, baselines.get(baseline, 0))
            row = replace(row, alone=tuple(baseline.name for baseline in own))
        found.append(row)
    made = [baseline.row(long) for baseline, long in baselines.items()]
    return found + list({row.name: row for row in made}.values())


class _Baseline(NamedTuple):
    """What a baseline is made of, but for how long it is trained."""

    start: str
    shape: tuple[Any, ...]
    """Numbers of layers and so on; or a small pre-trained model alone, which has its own."""
    which: str

    @property
    def name(self) -> str:
        """Its row: `cut-layers-6-first` begins with the first layers, `cut-layers-6` evenly."""
        from bertology.train.written_options import plain_name

        if len(self.shape) == 1:
            return plain_name(f"alone-{short_model(self.shape[0])}")
        end = "" if self.which == _EVEN else f"-{self.which}"
        return plain_name(f"{self.start}-{_size(self.shape, '-')}{end}")

    def row(self, epochs: int) -> Row:
        """Its row, trained so long."""
        if len(self.shape) == 1:
            title = f"no teacher, {short_model(self.shape[0])} as it is"
            return Row(self.name, title, f"alone:start={self.shape[0]},epochs={epochs}", ALONE)
        told = "random weights"
        if self.start != _RANDOM:
            parts = "parts of " if any(n is not None for n in self.shape[1:]) else ""
            which = f": {self.which}" if self.which != _EVEN else ""
            told = f"{parts}pre-trained layers{which}"
        begins = _RANDOM if self.start == _RANDOM else "auto"
        which = "" if self.which == _EVEN else f"which={self.which},"
        text = f"alone:{_size(self.shape, ',')},start={begins},{which}epochs={epochs}"
        sizes = _size(self.shape, ", ").replace("=", " ")
        return Row(self.name, f"no teacher, {told} ({sizes})", text, ALONE)


def _size(shape: tuple[Any, ...], between: str) -> str:
    return between.join(f"{n}={v}" for n, v in zip(_SHAPE, shape, strict=True) if v is not None)
