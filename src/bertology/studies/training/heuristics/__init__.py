"""Heuristics: does a model of inference go by shallow heuristics, and what helps against them?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from bertology.errors import ParameterError
from bertology.parameters import check_some_of, parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, percent, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.tables import bounded
from bertology.studies.designs.task_trials import BARS, tuning_settings
from bertology.studies.designs.trials import Trials, reaching, split_part
from bertology.studies.study import Context, Needs
from bertology.studies.training.finetuning_variants.runs import Variant, VariantRun, train_variant
from bertology.studies.training.fragments.data import hypotheses
from bertology.studies.training.heuristics.data import (
    ALL,
    ENTAILED,
    NOT,
    HeuristicData,
    Source,
    collapsed,
    overlap_answers,
    read_data,
    switches_of,
)
from bertology.studies.training.heuristics.scores import (
    CHANCE,
    OVERLAP,
    SEEDLESS,
    VANILLA,
    HeuristicRuns,
    greatest,
    less,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.stats import Estimate
    from bertology.studies.designs.trials import Reach
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import Start
    from bertology.train.token_rows import Encoded
    from bertology.train.ways import Way


COMPARED = ("siamese-frozen", "siamese", "adapters", "hex")  # what was to help
HYPOTHESIS = "hypothesis-only"
TAUGHT = "taught-"
_TITLES = {
    VANILLA: "plain fine-tuning",
    "siamese-frozen": "Siamese, frozen",
    "siamese": "Siamese, trained",
    "adapters": "adapters",
    "hex": "HEX projection",
    HYPOTHESIS: "hypothesis only",
    OVERLAP: "overlap only",
}
_KNOWN = ("lexical_overlap", "subsequence", "constituent")  # heuristics that claims speak of
NOT_LEARNT = (
    "not judged: plain fine-tuning did not surely learn the task, so that nothing can be said of "
    "how it is solved"
)
NOT_RUN = "not judged: not all of the four ways that were to help were run"
NOT_TAUGHT = (
    "not judged: no model learnt counterexamples; where the grammar makes the training data "
    "(--nli grammar-entailment), they can be switched on"
)
_SHARES = dict.fromkeys(("task", "score", "entailed", "not_entailed", "accuracy"), "%")
_POINTS = dict.fromkeys(("use", "gain"), "points")


def title_of(method: str) -> str:
    """What a method is called in figures."""
    if method.startswith(TAUGHT):
        return f"counterexamples: {method.removeprefix(TAUGHT).replace('_', ' ')}"
    return _TITLES.get(method, method)


class HeuristicsResult(Result):
    """How far models of inference go by heuristics.

    Table `methods`: for each method the score on the task (two labels), the score on pairs that
    mislead, what is entailed and what is not apart, how far heuristics are used, and the gain over
    plain fine-tuning; `collapsed` are runs that give the task one answer only. `heuristics`: the
    same by heuristic. `subcases`: the share of right answers by subcase. `runs`: single runs. In
    scores labels weigh the same: chance is 50 %.
    """

    lead: ClassVar[int] = 6
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "methods": {**_SHARES, **_POINTS},
        "heuristics": {**_SHARES, **_POINTS},
        "subcases": _SHARES,
        "runs": _SHARES,
    }

    @property
    def answer(self) -> str:
        """Whether heuristics are used, and whether anything helps."""
        found = self.evidence()
        table = self.tables["methods"]
        lost = int(table["collapsed"][table["method"] == VANILLA].sum())
        more = f", of which {lost} collapsed" if lost else ""
        runs = f"(over {self.facts['seeds']} seeds{more})."
        if "heuristic_use" not in found:
            why = self.reasons().get("heuristic_use", "nothing was measured")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')} {runs}"
        use = found["heuristic_use"]
        surely = (
            "surely goes by heuristics" if use.low > 0
            else "does not surely go by heuristics"
        )  # fmt: skip
        told = (
            f"The fine-tuned model {surely}: it takes pairs that mislead for entailed "
            f"{points(use)} oftener than their controls, and scores "
            f"{percent(found['heuristics_score'], limits=(CHANCE,))} where chance is 50"
        )
        helped = [
            title_of(name)
            for name in COMPARED
            if (gain := found.get(f"{_plain(name)}_gain")) is not None and gain.low > 0
        ]
        if helped:
            told += f"; surely better: {listed(helped)}"
        elif "best_gain" in found:
            told += f"; no other way surely helps (best: {points(found['best_gain'])})"
        if "taught_gain" in found:
            told += f"; counterexamples in training add {points(found['taught_gain'])}"
        return f"{told} {runs}"

    def headline(self) -> str:
        """What was learnt and asked."""
        facts = self.facts
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, {facts['epochs']} "
            f"epochs; {facts['examples']} pairs of {facts['heuristics']} heuristics, "
            f"{facts['subcases']} subcases; {facts['seeds']} seeds; chance is 50 %"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Methods, heuristics and subcases."""
        apart = (
            "Heuristics say that all pairs are entailed, so it is the accuracy on pairs that are "
            "not entailed which they break."
        )
        rows = self.tables["methods"]
        panels = [
            Dots.of_columns("task (%)", rows, "task", level=100 * CHANCE),
            Dots.of_columns("misleading pairs (%)", rows, "score", level=100 * CHANCE),
            Dots.of_columns("not entailed (%)", rows, "not_entailed", level=100 * CHANCE),
            Dots.of_columns("use of heuristics (points)", rows, "use", level=0),
        ]
        return [
            drawings.dots(
                "methods",
                panels,
                [title_of(str(name)) for name in rows["method"]],
                self.about,
                title="Shallow heuristics by method",
                caption="One row for each method. From left to right: the score on the task that "
                "was learnt, the score on pairs that mislead (in both, labels weigh the same, and "
                "any constant answer is at the dashed line), the share of right answers on pairs "
                "that are not entailed, and how much oftener these are taken for entailed than "
                f"their controls, hypotheses with few words of the premise. {apart} Intervals are "
                "over seeds, and examples or subcases.",
                note="Dashed: chance, 50 %, or no use. Hollow: no interval.",
            ),
            self._draw_heuristics(),
            Drawing(
                "subcases",
                self._draw_subcases,
                "Right answers of the plainly fine-tuned model by subcase, first those that are "
                "entailed and then those that are not, by heuristic. Grey bars: a model that "
                "knows only how far words overlap. Intervals are over seeds and examples and hold "
                f"for all subcases together. {apart}",
            ),
        ]

    def _draw_heuristics(self) -> Drawing:
        rows = self.tables["heuristics"]
        rows = rows[rows["method"].isin([VANILLA, *COMPARED])]
        panels = [
            Dots.of_columns("entailed (%)", rows, "entailed", level=100 * CHANCE),
            Dots.of_columns("not entailed (%)", rows, "not_entailed", level=100 * CHANCE),
            Dots.of_columns("use (points)", rows, "use", level=0),
        ]
        names = [
            f"{str(group).replace('_', ' ')}: {title_of(str(method))}"
            for group, method in zip(rows["heuristic"], rows["method"], strict=True)
        ]
        return drawings.dots(
            "heuristics",
            panels,
            names,
            self.about,
            title="Use of heuristics",
            caption="One row for each heuristic and method: right answers on pairs that are "
            "entailed, on pairs that are not, and how far the heuristic is used. Right of the "
            "dashed line at 0 it is. Intervals hold for all heuristics of a method together.",
            note="Dashed: chance, 50 %, or no use. Intervals for all heuristics together.",
        )

    def _draw_subcases(self) -> Figure:
        table = self.tables["subcases"]
        rows = table[table["method"] == VANILLA]
        words = table[table["method"] == OVERLAP]
        right = Dots.of_columns("right (%)", rows, "accuracy", level=100 * CHANCE)
        bars = 100 * words["accuracy"].to_numpy(float) if len(words) else None
        names = [
            f"{str(group).replace('_', ' ')}, {label}: {case}"
            for group, label, case in zip(
                rows["heuristic"], rows["label"], rows["subcase"], strict=True
            )
        ]
        return interval_dots(
            [replace(right, bars=bars)],
            names,
            title=f"Subcases\n{self.about}",
            note="Dashed: chance, 50 %. Grey bars: overlap only.",
        )


def concluded(
    runs: HeuristicRuns,
) -> tuple[dict[str, pd.DataFrame], dict[str, Estimate | None], dict[str, str]]:
    """Tables, evidence, and reasons why something is not judged."""
    tables = {
        "methods": _methods(runs),
        "heuristics": _heuristics(runs),
        "subcases": _subcases(runs),
        "runs": _runs(runs),
    }
    return tables, *_evidence(runs)


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.lower()).strip("_")


def _taught(runs: HeuristicRuns) -> dict[int, str]:
    """The model that learnt counterexamples to each heuristic, by its number.

    Where there is none that learnt those of one heuristic only, the one that learnt all.
    """
    known = {name.removeprefix(TAUGHT): name for name in runs.said if name.startswith(TAUGHT)}
    found = {at: known.get(name, known.get(ALL)) for at, name in enumerate(runs.groups)}
    return {at: name for at, name in found.items() if name is not None}


def _evidence(runs: HeuristicRuns) -> tuple[dict[str, Estimate | None], dict[str, str]]:
    """Nothing is said of how a task is solved that was not learnt."""
    gains = [name for name in COMPARED if name in runs.said]
    uses = {f"{name}_use": name for name in _KNOWN}
    judged = [
        "heuristic_use", "best_gain", "taught_gain", *uses, *(f"{_plain(n)}_gain" for n in COMPARED)
    ]  # fmt: skip
    found: dict[str, Estimate | None] = {"task_gain": less(runs.task_score(VANILLA), CHANCE)}
    if not runs.learnt(VANILLA):
        return found, dict.fromkeys(judged, NOT_LEARNT)
    reasons: dict[str, str] = {}
    everything, misleading = runs.weights(), runs.weights(labels=(NOT,))
    found["heuristics_score"] = runs.score(VANILLA, everything)
    found["not_entailed_score"] = runs.score(VANILLA, misleading)
    found["heuristic_use"] = runs.use(VANILLA, misleading)
    numbers = {_plain(name): at for at, name in enumerate(runs.groups)}
    for quantity, name in uses.items():
        if name in numbers:
            weights = runs.weights([numbers[name]], (NOT,))
            found[quantity] = runs.use(VANILLA, weights)  # a claim of its own, chosen before
        else:
            reasons[quantity] = f"not judged: the corpus has no heuristic {name!r}"
    for name in gains:
        found[f"{_plain(name)}_gain"] = runs.gain(name, VANILLA, everything, len(gains))
    unlearnt = [title_of(name) for name in gains if not runs.learnt(name)]
    if len(gains) < len(COMPARED):
        reasons["best_gain"] = NOT_RUN
    elif unlearnt:
        # A way that learns nothing does not help, but says nothing of how it would if it did.
        reasons["best_gain"] = f"not judged: the task was not surely learnt by {listed(unlearnt)}"
    else:
        each = {name: runs.gain(name, VANILLA, everything) for name in gains}
        found["best_gain"] = greatest(each)
    taught = _taught(runs)
    own = {name: [at for at, of in taught.items() if of == name] for name in taught.values()}
    poor = [title_of(name) for name, at in own.items() if not runs.taught_learnt(name, at)]
    if poor:
        # What learnt nothing scores as low as what goes by a heuristic, and shows no shortcut.
        reasons["taught_gain"] = f"not judged: nothing was surely learnt with {listed(poor)}"
    elif taught:
        found["taught_gain"] = runs.taught_gain(taught)
    else:
        reasons["taught_gain"] = NOT_TAUGHT
    return found, reasons


def _methods(runs: HeuristicRuns) -> pd.DataFrame:
    """One row for each method."""
    import pandas as pd

    everything = runs.weights()
    rows = []
    for method in runs.said:
        family = sum(name in COMPARED for name in runs.said) if method in COMPARED else 1
        gain = None if method == VANILLA else runs.gain(method, VANILLA, everything, family)
        row: dict[str, object] = {
            "method": method,
            "seeds": len(runs.said[method]),
            "collapsed": runs.collapsed(method),
            **bounded("task", runs.task_score(method)),
            **bounded("score", runs.score(method, everything)),
            **bounded("entailed", runs.score(method, runs.weights(labels=(ENTAILED,)))),
            **bounded("not_entailed", runs.score(method, runs.weights(labels=(NOT,)))),
            **bounded("use", runs.use(method, runs.weights(labels=(NOT,)))),
            **bounded("gain", gain),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _heuristics(runs: HeuristicRuns) -> pd.DataFrame:
    """One row for each heuristic and method; bounds hold for all heuristics together."""
    import pandas as pd

    tests, rows = len(runs.groups), []
    for at, name in enumerate(runs.groups):
        both, no = runs.weights([at]), runs.weights([at], (NOT,))
        for method in runs.said:
            gain = None if method == VANILLA else runs.gain(method, VANILLA, both, tests)
            row: dict[str, object] = {
                "heuristic": name,
                "method": method,
                **bounded("score", runs.score(method, both, tests)),
                **bounded("entailed", runs.score(method, runs.weights([at], (ENTAILED,)), tests)),
                **bounded("not_entailed", runs.score(method, no, tests)),
                **bounded("use", runs.use(method, no, tests)),
                **bounded("gain", gain),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def _subcases(runs: HeuristicRuns) -> pd.DataFrame:
    """One row for each method and subcase; bounds hold for all subcases of a method together."""
    import pandas as pd

    tests, rows = len(runs.subcases), []
    for method in runs.said:
        for at, name in enumerate(runs.subcases):
            weights = runs.of_subcase(at)
            here = weights > 0
            first = int(here.argmax())
            found = runs.score(method, weights, tests) if here.sum() > 1 else None
            row: dict[str, object] = {
                "method": method,
                "heuristic": runs.groups[int(runs.group[first])],
                "label": "entailed" if runs.labels[first] == ENTAILED else "not entailed",
                "subcase": name,
                "pairs": int(here.sum()),
                **bounded("accuracy", found),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def _runs(runs: HeuristicRuns) -> pd.DataFrame:
    """One row for each run."""
    import pandas as pd

    from bertology.stats.balanced import weights_by_class

    weighed = {
        "score": runs.weights(),
        "entailed": runs.weights(labels=(ENTAILED,)),
        "not_entailed": runs.weights(labels=(NOT,)),
    }
    rows = []
    for method in runs.said:
        task = (runs.task[method] == runs.task_labels) @ weights_by_class(runs.task_labels)
        shares = {name: runs.right(method) @ weights for name, weights in weighed.items()}
        for seed in range(len(task)):
            row = {"method": method, "seed": seed, "task": float(task[seed])}
            rows.append(row | {name: float(of[seed]) for name, of in shares.items()})
    return pd.DataFrame(rows)


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
    version: ClassVar[int] = 5  # bounds allow for rare answers that were not seen
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
        check_some_of(self, "methods", METHODS, least=0)
        known = switches_of(self.nli)
        if self.taught and not known:
            must = "be left out where the grammar does not make the training data (--nli)"
            raise ParameterError("taught", "Heuristics", must, list(self.taught))
        check_some_of(self, "taught", (*known, ALL), least=0)

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

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """All ways must fit the model, and there must be something to learn and to ask."""
        room = _Room(self, encoder, corpus)
        for name in (VANILLA, *self.methods):
            if name in _WAYS:
                self._run(room, name, 0).check()

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The training data: other files under the same name are another study."""
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
        if variant == OVERLAP:
            data, texts = room.data(VANILLA), room.data(VANILLA).texts
            asked = (texts.scored, texts.controls, texts.task)
            said = overlap_answers(data.train, asked)
        else:
            said = self._answers(room, variant, seed, context, reach)
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
