"""Paraphrased reading: are questions still answered when they are put in other words?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.task_trials import BARS, TaskTrials
from bertology.studies.designs.trials import reaching, split_part
from bertology.studies.study import Context, Needs
from bertology.studies.training.paraphrased_reading.data import (
    BLIND,
    FULL,
    LEARNT,
    RULES,
    ReadingData,
    Wanted,
    by_rules,
    read_data,
    seen_by,
)
from bertology.studies.training.paraphrased_reading.scores import FEWEST, ReadingRuns

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.stats import Estimate
    from bertology.studies.designs.trials import Reach


TITLES = {
    FULL: "model",
    BLIND: "model without the text",
    "without-question": "model without the question",
    "most-frequent-place": "most frequent place",
    "longest-answer": "longest answer",
    "word-overlap": "word overlap",
}
NOT_LEARNT = (
    "not judged: the model does not surely answer more than guessing does, so there is nothing to "
    "lose"
)
NOT_PAIRED = (
    "not judged: the challenge set has questions of its own, so that it is not known what "
    "rewording did to each"
)
TOO_FEW = (
    f"not judged: word overlap finds fewer than {FEWEST} answers that it loses by rewording, or "
    "fewer that it keeps"
)
_SHARES = {"original": "%", "paraphrased": "%", "drop": "points"}


class ParaphrasedReadingResult(Result):
    """How well questions are answered before and after rewording.

    Table `methods`: the model, the same without the text or the question, and rules. `types`: the
    model by type of question (`overlap_drop` is the drop of the rule). `overlap`: questions that
    word overlap answers, by whether it still does after rewording; of paired data only.
    """

    lead: ClassVar[int] = 6
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "methods": _SHARES,
        "types": {**_SHARES, "overlap_drop": "points"},
        "overlap": _SHARES,
    }

    @property
    def answer(self) -> str:
        """What is lost by rewording, and what is reached without reading."""
        found, facts = self.evidence(), self.facts
        seeds = f"over {facts['seeds']} seeds"
        blind = found.get("without_text_gain")
        told = (
            f"Without the text a model answers {points(blind)} more than guessing" if blind else ""
        )
        if "paraphrase_drop" not in found:
            why = self.reasons().get("paraphrase_drop", "nothing was measured")
            more = f" {told} ({seeds})." if told else ""
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}.{more}"
        drop, first = found["paraphrase_drop"], found["original_accuracy"]
        surely = "surely loses" if drop.low > 0 else "does not surely lose:"
        lost = (
            f"Of {percent(first, limits=())} right answers it {surely} {points(drop)} by rewording"
        )
        beyond = found.get("drop_beyond_blind")
        if beyond is not None and not facts["paired"]:
            lost += f", {points(beyond)} more than without the text"
        return f"{lost}. {told} ({seeds})." if told else f"{lost} ({seeds})."

    def headline(self) -> str:
        """What was learnt and asked."""
        facts = self.facts
        same = "the same questions about" if facts["paired"] else "and other questions about"
        kinds = [
            f"{what}: {facts[name]}"
            for what, name in (("learnt", "genres_learnt"), ("asked", "genres_asked"))
            if name in facts
        ]
        return "; ".join(
            [
                f"{facts['questions']} questions about {facts['texts']} texts, {same} "
                f"{facts['other_texts']} reworded",
                f"learnt from {facts['train_size']}",
                *kinds,
                *([self._across] if self._across else []),
                f"{facts['seeds']} seeds",
                f"guessing gives {100 / int(facts['answers']):.0f} %",
            ]
        )

    @property
    def _across(self) -> str:
        """That other kinds of text were learnt than are asked about; else nothing."""
        new = self.facts.get("genres_not_learnt")
        return f"nothing was learnt about {new}, so shares are across kinds of text" if new else ""

    def drawings(self) -> Sequence[Drawing]:
        """All methods, and the model by type of question."""
        rewording = (
            "the texts in other words" if self.facts["paired"] else "the challenge set's questions"
        )
        sides = (
            "From left to right: the share of right answers to the questions as they are, to "
            f"{rewording}, and how much less the second is. Dashed: guessing, or no loss."
        )
        if self._across:
            sides += f" {self._across[0].upper()}{self._across[1:]}."
        found = [
            drawings.dots(
                "methods",
                self._panels("methods"),
                [TITLES[str(name)] for name in self.tables["methods"]["method"]],
                self.about,
                title="Reading and rewording",
                caption="One row for each method: the model, the same trained without the text or "
                f"without the question, and three rules that learn nothing. {sides} Intervals are "
                "over seeds and texts.",
                note="Dashed: guessing, or no loss. Intervals over seeds and texts.",
            )
        ]
        if len(self.tables["types"]) > 1:
            found.append(
                drawings.dots(
                    "types",
                    self._panels("types"),
                    [str(name).replace("_", " ") for name in self.tables["types"]["type"]],
                    self.about,
                    title="Rewording by type of question",
                    caption=f"One row for each type of question, the last for all. {sides} "
                    "Intervals are over seeds and texts, and hold for all types together.",
                    note="Dashed: guessing, or no loss. Intervals hold for all types together.",
                )
            )
        return found

    def _panels(self, name: str) -> list[Dots]:
        rows, chance = self.tables[name], 100 / int(self.facts["answers"])
        return [
            Dots.of_columns("original (%)", rows, "original", level=chance),
            Dots.of_columns("reworded (%)", rows, "paraphrased", level=chance),
            Dots.of_columns("loss (points)", rows, "drop", level=0),
        ]


def concluded(runs: ReadingRuns) -> tuple[dict[str, Estimate | None], dict[str, str]]:
    """Quantities, and reasons why something is not judged."""
    found: dict[str, Estimate | None] = {
        "original_accuracy": runs.score(FULL, 0),
        "paraphrased_accuracy": runs.score(FULL, 1),
        "reading_gain": runs.gain(FULL),
        "without_text_gain": runs.gain(BLIND),
    }
    learnt = found["reading_gain"]
    assert learnt is not None
    if len(runs.original[FULL]) > 1 and not learnt.low > 0:
        return found, dict.fromkeys(("paraphrase_drop", "overlap_drop"), NOT_LEARNT)
    found["paraphrase_drop"] = runs.drop(FULL)
    found["drop_beyond_blind"] = runs.drop_beyond(FULL, BLIND)
    more = found["overlap_drop"] = runs.overlap_drop()
    if more is not None:
        return found, {}
    return found, {"overlap_drop": TOO_FEW if runs.paired else NOT_PAIRED}


_BY_RULES = "rules"


@dataclass(frozen=True)
class ParaphrasedReading(TaskTrials):
    """Does a model that answers questions read, or does it match words?

    Method: the model learns to choose one of several answers to a question about a text (a head
    for multiple choice over its first token), and is asked about texts that it did not see. The
    same questions are then asked about the texts in other words (the field `paraphrase`); or, as
    QuAIL has it, questions of a challenge set that were paraphrased against matching of words. The
    drop is told for each type of question. Beside it: models with the same seeds that are trained
    and asked without the text, and without the question; the place where right answers are most
    frequent in training; the longest answer; and word overlap, which takes the answer that shares
    most, with the question, with a stretch of the text (Richardson et al. 2013). Where a rule finds
    several answers equally good it is right in part. Where the same questions are asked twice, the
    drop is also compared between those that word overlap loses by rewording and those that it
    keeps. Texts are the unit of intervals, since questions about one text are not independent;
    seeds and texts count together. Intervals of single types hold for all of them together. What is
    learnt is told against guessing: the head reads each answer by itself, and so does not know the
    place where it stands.

    Source: Rogers et al. (2020), Getting Closer to AI Complete Question Answering (QuAIL), as told
    in BERTology Nuggets. Limits: QuAIL's challenge set has other texts, all fiction, so that its
    drop is also one between texts; originals are then asked about fiction only, and the drop is
    also told beyond that of the model without the text (`drop_beyond_blind`). Where texts are held
    out of the corpus, what is learnt may be of other kinds than what is asked: of QuAIL's 30 texts
    of fiction, 30 held out leave none to learn from. The headline tells the kinds. Texts that are
    longer than the model takes lose their end.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "text_b", "label", "candidates", "item"}), task=True
    )
    result_type: ClassVar[type[Result]] = ParaphrasedReadingResult
    trains_models: ClassVar[bool] = True
    version: ClassVar[int] = 2  # intervals by how alike questions of a text are; beside guessing

    challenge: str = parameter(
        "", "Other data with paraphrased questions; if not given, the paraphrases of the corpus, "
        "or its split of that name.",
    )  # fmt: skip
    challenge_split: str = parameter("challenge", "The split with paraphrased questions.")
    held_out: int = parameter(
        0, "Ask about so many texts of the corpus (of the kinds that the challenge set has), and "
        "learn from its others, where there is no training split; 0: there is one.",
        minimum=0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.held_out == 1:
            must = "be 0, or 2 texts at least"
            raise ParameterError("held_out", "ParaphrasedReading", must, 1)

    def data(self, corpus: Corpus) -> ReadingData:
        """All corpora."""
        return read_data(
            corpus,
            Wanted(
                self.train,
                self.train_split,
                self.examples,
                self.challenge,
                self.challenge_split,
                self.held_out,
            ),
        )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """All data must be there, and be multiple choice with as many answers."""
        from bertology.train.encoded import answer_count, learnable
        from bertology.train.starts import STARTS, begin

        task = learnable(corpus)
        if task.kind != "multiple-choice":
            must = (
                f"be multiple choice, not {task.kind} (a file of questions is read with --columns "
                "reader=multiple-choice)"
            )
            raise ParameterError("corpus", "ParaphrasedReading", must, corpus.name)
        data = self.data(corpus)
        counts = {answer_count(one): one.name for one in (data.train, data.original)}
        counts |= {answer_count(data.paraphrased): data.paraphrased.name}
        if len(counts) > 1:
            must = f"have as many answers as the corpus ({answer_count(data.original)})"
            raise ParameterError("train, challenge", "ParaphrasedReading", must, sorted(counts))
        begin(encoder, task, STARTS["pretrained"], seed=0)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The other data: other files under the same names are another study."""
        return {"training_data": _fingerprint(self.data(corpus))}

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those that are learnt from and those that are asked about, with their questions."""
        data = self.data(corpus)
        return [t for one in (data.train, data.original, data.paraphrased) for t in one.texts]

    # Parts ----------------------------------------------------------------------------------------

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """The rules, then a model for each seed and each kind of input."""
        learnt = [f"{name}-seed-{seed}" for seed in range(self.seeds) for name in LEARNT]
        return [f"{_BY_RULES}-seed-0", *learnt]

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Train one model and ask it, or ask the rules."""
        variant, seed = split_part(part)
        data, reach = self.data(corpus), reaching(context)
        if variant == _BY_RULES:
            found = _ruled(data)
        else:
            found = self._asked(encoder, data, variant, seed, reach, context)
        reach(BARS)
        return found

    def _asked(
        self,
        encoder: Encoder,
        data: ReadingData,
        variant: str,
        seed: int,
        reach: Reach,
        context: Context,
    ) -> xr.Dataset:
        from bertology.train.encoded import encode, learnable
        from bertology.train.evaluate import predict
        from bertology.train.iterative_pruning import tuned_encoder
        from bertology.train.starts import STARTS
        from bertology.train.tuning import TuningJob

        start = STARTS["pretrained"]
        settings = self.settings(start, encoder.shape.hidden, seed)
        train, original, other = (
            seen_by(variant, one) for one in (data.train, data.original, data.paraphrased)
        )
        made = tuned_encoder(
            TuningJob(encoder, train, original, start, settings),
            context.trained,
            progress=lambda step: reach((BARS - 1) * step.done // step.total),
        )
        limit, right = self.cut_at(encoder), []
        for asked in (original, other):
            encoded = encode(asked, encoder.tokenizer, limit)
            said = predict(made.model, encoded, learnable(asked))
            right.append((said == np.asarray(encoded.targets))[None].astype(float))
        return _answered([variant], right, data)

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares of right answers, drops, and where they are."""
        runs = ReadingRuns.read(measured, self.level)
        evidence, reasons = concluded(runs)
        facts = measured[f"{_BY_RULES}-seed-0"].attrs
        tables = {"methods": runs.methods_table(), "types": runs.types_table()}
        if runs.paired:
            tables["overlap"] = runs.overlap_table()
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={
                "questions": len(runs.texts[0]),
                "texts": len(np.unique(runs.texts[0])),
                "other_texts": len(np.unique(runs.texts[1])),
                "answers": int(facts["answers"]),
                "train_size": int(facts["train_size"]),
                "paired": int(runs.paired),
                "seeds": self.seeds,
                **{name: str(facts[name]) for name in facts if name.startswith("genres_")},
            },
        )


def _fingerprint(data: ReadingData) -> str:
    """Of everything that is learnt from and asked."""
    from hashlib import sha256

    read = (data.train, data.original, data.paraphrased)
    return sha256(" ".join(one.fingerprint for one in read).encode()).hexdigest()[:16]


def _answered(
    methods: Sequence[str], right: Sequence[NDArray[np.float64]], data: ReadingData
) -> xr.Dataset:
    """How far each answer is right: (methods, questions), in the original words and in others."""
    import xarray as xr

    return xr.Dataset(
        {
            "original": (("method", "question"), right[0]),
            "paraphrased": (("method", "asked"), right[1]),
        },
        {"method": list(methods)},
        {"fingerprint": _fingerprint(data)},
    )


def _ruled(data: ReadingData) -> xr.Dataset:
    """What rules answer, and which text and type each question has."""
    from bertology.train.encoded import answer_count

    sides = data.original, data.paraphrased
    found = _answered(RULES, [by_rules(data.train, one) for one in sides], data)
    texts, types = ([[_named(e, key) for e in one] for one in sides] for key in ("item", "group"))
    # Texts of two sets are others even under the same name, unless the questions are the same.
    marked = texts if data.paired else [[f"{k} {t}" for t in side] for k, side in enumerate(texts)]
    numbers = {name: n for n, name in enumerate(sorted({*marked[0], *marked[1]}))}
    names = sorted({*types[0], *types[1]})
    kinds = {name: n for n, name in enumerate(names)}
    found = found.assign(
        text=("question", np.array([numbers[t] for t in marked[0]])),
        asked_text=("asked", np.array([numbers[t] for t in marked[1]])),
        type=("question", np.array([kinds[t] for t in types[0]])),
        asked_type=("asked", np.array([kinds[t] for t in types[1]])),
    ).assign_coords(type_name=names)
    return found.assign_attrs(
        paired=int(data.paired),
        train_size=len(data.train),
        answers=answer_count(data.original),
        **data.genres,
    )


def _named(example: Example, key: str) -> str:
    return str(example.annotations.get(key, "all"))
