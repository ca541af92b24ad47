"""Heuristics: does a model of inference go by shallow heuristics, and what helps against them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from bertology.errors import InterruptedRunError, ParameterError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.task_trials import BARS, tuning_settings
from bertology.studies.designs.trials import Trials, reaching, split_part
from bertology.studies.study import Context, Needs
from bertology.studies.training.finetuning_variants.choice import Variant
from bertology.studies.training.finetuning_variants.runs import VariantRun, train_variant
from bertology.studies.training.fragments.data import hypotheses
from bertology.studies.training.heuristics.data import (
    ALL,
    HeuristicData,
    Source,
    collapsed,
    overlap_answers,
    read_data,
    switches_of,
)
from bertology.studies.training.heuristics.results import (
    COMPARED,
    HYPOTHESIS,
    TAUGHT,
    HeuristicsResult,
    concluded,
)
from bertology.studies.training.heuristics.scores import OVERLAP, SEEDLESS, VANILLA, HeuristicRuns

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.studies.designs.trials import Reach
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import Start
    from bertology.train.token_rows import Encoded
    from bertology.train.ways import Way

_WAYS = {
    VANILLA: Variant("fine-tuned"),
    "siamese-frozen": Variant("Siamese, frozen encoder", ("siamese",), start="frozen-features"),
    "siamese": Variant("Siamese, trained encoder", ("siamese",)),
    "adapters": Variant("adapters", ("adapters:size=16",)),
    "hex": Variant("HEX projection", ("hex",)),
}
_BASELINES = (HYPOTHESIS, OVERLAP)
METHODS = (*COMPARED, *_BASELINES)


@dataclass(frozen=True)
class Heuristics(Trials):
    """Does a model of inference go by shallow heuristics, and which ways of training help?

    Method: models learn a task of inference (`nli`) and are asked the pairs of the corpus, which is
    made as HANS is: each pair belongs to a heuristic (`group`), such as "a premise entails all
    sentences made of its words", and half of the pairs are not entailed though the heuristic says
    so. Each heuristic, label and subcase weighs the same, so that any constant answer scores 50 %.
    The use of a heuristic is how much oftener its pairs that are not entailed are called entailed
    than controls: the same premises with other hypotheses, which share few words with them.

    Beside plain fine-tuning (`vanilla`) stand a Siamese model, which reads both texts apart, with a
    frozen and with a trained encoder; adapters; HEX, which projects what a bag of words predicts
    out of the answers (Wang et al. 2019); the model that sees the second text only; and a logistic
    regression that knows how far words overlap. Where the grammar makes the training data, every
    heuristic is right in them; models `taught-…` learn from data with counterexamples.

    Intervals are over seeds, and over examples or, where these differ more, over subcases; those of
    a table hold together. Nothing is judged where plain fine-tuning did not surely learn the task.

    Source: BERTology Nuggets, "Shallow heuristics in NLI" and what follows; McCoy et al. (2019);
    Bhargava, Drozd and Rogers (2021). Limits: each way has one setting. Subcases are few, so that
    intervals over other templates are rough. Models of several sizes are compared by
    `bertology join model-sizes`.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "text_b", "label", "group"}), task=True
    )
    help_options: ClassVar[tuple[str, str]] = ("--limit 600 --nli-examples 2000", "")
    result_type: ClassVar[type[Result]] = HeuristicsResult
    trains_models: ClassVar[bool] = True
    version: ClassVar[int] = 3  # answers of plain fine-tuning are kept, to compare models by them
    column: ClassVar[str] = "method"

    methods: tuple[str, ...] = parameter(METHODS, "Methods beside plain fine-tuning.")
    taught: tuple[str, ...] = parameter(
        (),
        "Heuristics whose counterexamples one more model each learns from, or all; only where the "
        "grammar makes the training data. If not given: there, each and all.",
    )
    nli: str = parameter("grammar-entailment", "The task to learn: a corpus of inference.")
    nli_split: str = parameter("train", "The split to learn from.")
    nli_scored: str = parameter("validation", "The split on which the task itself is scored.")
    nli_examples: int | None = parameter(
        None, "Learn from so many examples, drawn at random; all if not given.", minimum=20
    )
    nli_limit: int | None = parameter(
        1000, "Score the task on at most so many examples.", minimum=20
    )
    epochs: int = parameter(3, "Passes over the training data.", minimum=1)
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    learning_rate: float | None = parameter(
        None,
        "The highest learning rate. If not given: 2e-5; 1e-4 for models less than 512 wide, 2e-4 "
        "for less than 256. Adapters and a lone head take 1e-3.",
        minimum=1e-9,
    )
    max_length: int | None = parameter(None, "Cut texts to so many tokens.", minimum=3)

    def __post_init__(self) -> None:
        super().__post_init__()
        odd = [name for name in self.methods if name not in METHODS]
        if odd or len(set(self.methods)) < len(self.methods):
            must = f"be some of {', '.join(METHODS)}, none twice"
            raise ParameterError("methods", "Heuristics", must, list(self.methods))
        known = switches_of(self.nli)
        odd = [name for name in self.taught if name not in (*known, ALL)]
        if odd or len(set(self.taught)) < len(self.taught) or (self.taught and not known):
            must = (
                f"be some of {', '.join((*known, ALL))}, none twice"
                if known
                else "be left out where the grammar does not make the training data (--nli)"
            )
            raise ParameterError("taught", "Heuristics", must, list(self.taught))

    @property
    def variants(self) -> Sequence[str]:
        """Plain fine-tuning, the methods, and the models that learn from counterexamples."""
        known = switches_of(self.nli)
        taught = self.taught or ((*known, ALL) if known else ())
        return [VANILLA, *self.methods, *(f"{TAUGHT}{name}" for name in taught)]

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One run each; one only where nothing is drawn."""
        named = super().parts(shape, corpus)
        return [p for p in named if split_part(p)[1] == 0 or split_part(p)[0] not in SEEDLESS]

    # Data -----------------------------------------------------------------------------------------

    def data(self, corpus: Corpus, variant: str = VANILLA) -> HeuristicData:
        """All corpora of one training."""
        taught = variant.removeprefix(TAUGHT) if variant.startswith(TAUGHT) else ""
        source = Source(
            self.nli, self.nli_split, self.nli_scored, self.nli_examples, self.nli_limit
        )
        return read_data(corpus, source, taught)

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """All ways must fit the model, and there must be something to learn and to ask."""
        assert corpus is not None
        room = _Room(self, encoder, corpus)
        for name in (VANILLA, *self.methods):
            if name in _WAYS:
                self._run(room, name, 0).check()

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The training data: other files under the same name are another study."""
        assert corpus is not None
        return {"training_data": _fingerprint(self.data(corpus))}

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those that are learnt from, and those that are asked."""
        data = self.data(corpus)
        read = [data.train, data.texts.scored, data.texts.controls, data.texts.task]
        return [text for one in read for text in one.texts]

    def cut_at(self, encoder: Encoder) -> int | None:
        """What was asked for, or else as many tokens as the model takes."""
        return self.max_length or encoder.max_length

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Per cent of the run."""
        return BARS

    # Parts ----------------------------------------------------------------------------------------

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Train one model, or go on with it, and keep its answers."""
        variant, seed = split_part(part)
        room, reach = _room(self, encoder, corpus), reaching(context)
        try:
            if variant == OVERLAP:
                data, texts = room.data(VANILLA), room.data(VANILLA).texts
                asked = (texts.scored, texts.controls, texts.task)
                said = overlap_answers(data.train, asked)
            else:
                said = self._answers(room, variant, seed, context, reach)
        except InterruptedRunError:
            raise KeyboardInterrupt from None  # the session knows what is kept
        reach(BARS)
        return _answered([collapsed(row) for row in said], room.data(VANILLA))

    def _answers(
        self, room: _Room, variant: str, seed: int, context: Context, reach: Reach
    ) -> list[np.ndarray]:
        from bertology.train.evaluate import predict

        run = self._run(room, variant, seed)
        keep = variant == VANILLA
        trained = train_variant(run, context.trained, keep=keep, reach=reach)
        asked = room.asked_of_hypotheses if variant == HYPOTHESIS else room.asked
        return [predict(trained.model, rows, room.data(VANILLA).task) for rows in asked]

    def _run(self, room: _Room, variant: str, seed: int) -> VariantRun:
        data = room.data(variant if variant.startswith(TAUGHT) else VANILLA)
        train, scored = data.train, data.validation
        if variant == HYPOTHESIS:
            train, scored = hypotheses(train), hypotheses(scored)

        def settings(start: Start, ways: Sequence[Way]) -> FinetuneSettings:
            return tuning_settings(self, start, room.encoder.shape.hidden, seed, ways)

        way = _WAYS.get(variant, _WAYS[VANILLA])
        return VariantRun.of(room.encoder, train, scored, way, settings)

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores, what heuristics are used, and what helps."""
        runs = HeuristicRuns.read(measured, self.level)
        first = next(iter(measured.values())).attrs
        tables, evidence, reasons = concluded(runs)
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            arrays=runs.kept(),
            facts={
                "task": first["task"],
                "train_size": int(first["train_size"]),
                "heuristics": len(runs.groups),
                "subcases": len(runs.subcases),
                "examples": len(runs.labels),
                "controls": len(runs.controlled),
                "seeds": runs.seeds,
                "epochs": self.epochs,
            },
        )


class _Room:
    """The data of a study, and in this model's tokens: made once for all parts."""

    def __init__(self, study: Heuristics, encoder: Encoder, corpus: Corpus) -> None:
        self.study, self.encoder, self.corpus = study, encoder, corpus
        self._data: dict[str, HeuristicData] = {}

    def data(self, variant: str) -> HeuristicData:
        """All corpora of one training."""
        if variant not in self._data:
            self._data[variant] = self.study.data(self.corpus, variant)
        return self._data[variant]

    @cached_property
    def asked(self) -> list[Encoded]:
        """What every model is asked."""
        texts = self.data(VANILLA).texts
        return [self._encoded(one) for one in (texts.scored, texts.controls, texts.task)]

    @cached_property
    def asked_of_hypotheses(self) -> list[Encoded]:
        """The same without premises."""
        texts = self.data(VANILLA).texts
        asked = (texts.scored, texts.controls, texts.task)
        return [self._encoded(hypotheses(one)) for one in asked]

    def _encoded(self, corpus: Corpus) -> Encoded:
        from bertology.train.encoded import encode

        return encode(corpus, self.encoder.tokenizer, self.study.cut_at(self.encoder))


_ROOMS: WeakKeyDictionary[Encoder, tuple[object, _Room]] = WeakKeyDictionary()


def _room(study: Heuristics, encoder: Encoder, corpus: Corpus) -> _Room:
    key = (study, corpus.fingerprint)
    known = _ROOMS.get(encoder)
    if known is None or known[0] != key:
        known = key, _Room(study, encoder, corpus)
        _ROOMS[encoder] = known
    return known[1]


def _fingerprint(data: HeuristicData) -> str:
    """Of everything that is read beside the corpus."""
    from hashlib import sha256

    read = (data.train, data.validation, data.texts.controls)
    return sha256(" ".join(one.fingerprint for one in read).encode()).hexdigest()[:16]


def _answered(said: Sequence[np.ndarray], data: HeuristicData) -> xr.Dataset:
    """One part: what was said of all pairs, what is right, and what they are."""
    import xarray as xr

    texts = data.texts
    group, subcase, cases = data.as_numbers()
    return xr.Dataset(
        {
            "said": ("example", said[0]),
            "control": ("place", said[1]),
            "task": ("task_example", said[2]),
            "labels": ("example", np.asarray(texts.scored.labels, float)),
            "task_labels": ("task_example", np.asarray(texts.task.labels, float)),
            "group": ("example", group),
            "subcase": ("example", subcase),
            "controlled": ("place", data.controlled),
        },
        {"heuristic": data.groups, "case": cases},
        {
            "task": texts.task.name,
            "train_size": len(data.train),
            "scored_fingerprint": _fingerprint(data),
        },
    )
