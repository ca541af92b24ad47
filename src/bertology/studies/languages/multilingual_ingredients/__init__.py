"""Multilingual ingredients: what makes one model of two languages treat them alike?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bertology.errors import DataError, ParameterError
from bertology.parameters import check_some_of, parameter
from bertology.report import drawings
from bertology.report.figures import Band
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, repeated
from bertology.studies.designs.trials import (
    Reach,
    Reference,
    Runs,
    Trials,
    TrialsResult,
    split_part,
)
from bertology.studies.languages.multilingual_ingredients.scores import Asked, Tagged
from bertology.studies.study import Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.arrays import Bools, Ints
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.pretrain.config import Pretraining
    from bertology.train.pretrain.shards import Shards
    from bertology.train.pretrain.two_languages import Setting, TwoLanguages
    from bertology.train.protocols import Tokenizer

REFERENCE = "all"
ARMS = {
    REFERENCE: "all ingredients",
    "separate-positions": "own position embeddings",
    "separate-special": "own special tokens",
    "shared-pieces": "some pieces shared",
    "no-nsp": "without next sentences",
    "shallow": "fewer layers",
    "wide": "wider",
    "narrow": "narrower",
    "inverted": "inverted order of words",
    "other-text": "other documents",
    "tlm": "text beside its twin",
}


class _Contrast(NamedTuple):
    """Which two arms are compared, and which of them must be multilingual to tell anything."""

    one: str
    other: str
    multilingual: str = REFERENCE


_CONTRASTS = {
    "positions": _Contrast(REFERENCE, "separate-positions"),
    "special": _Contrast(REFERENCE, "separate-special"),
    "pieces": _Contrast("shared-pieces", REFERENCE),
    "no_nsp": _Contrast("no-nsp", REFERENCE),
    "depth": _Contrast(REFERENCE, "shallow"),
    "narrowness": _Contrast(REFERENCE, "wide"),
    "width": _Contrast(REFERENCE, "narrow"),
    "order": _Contrast(REFERENCE, "inverted"),
    "parallel": _Contrast(REFERENCE, "other-text"),
    # Neither has the loss of next sentences, for rows of twins have no next sentence.
    "tlm": _Contrast("tlm", "no-nsp", "tlm"),
}
_ENDINGS = {"multilinguality": "_score", "transfer": "_transfer"}
# What claims are judged on: corrected together, as far as it was measured.
JUDGED = (
    "multilingual_transfer",
    "positions_score",
    "special_score",
    "pieces_transfer",
    "no_nsp_transfer",
    "depth_transfer",
    "order_transfer",
    "parallel_score",
    "narrowness_score",
    "tlm_transfer",
)
_TOLD = {
    "multilinguality": "multilinguality (%)",
    "start_multilinguality": "multilinguality of random weights (%)",
    "retrieval": "sentences retrieved (%)",
    "translation": "words translated (%)",
    "transfer": "tags in the second language (%)",
    "start_transfer": "tags in the second, random weights (%)",
    "tagging": "tags in the first language (%)",
    "mlm_accuracy": "masked tokens, first language (%)",
    "twin_mlm_accuracy": "masked tokens, second language (%)",
    "mlm_loss": "loss, first language (nats)",
    "twin_mlm_loss": "loss, second language (nats)",
}
_DRAWN = ("multilinguality", "start_multilinguality", "retrieval", "translation", "transfer")
_MASKED = ("mlm_accuracy", "twin_mlm_accuracy")
_SPREAD = 0.004  # of what writes to the residual stream: deeper models else stay on a plateau
_FEWEST = 20  # sentences or words to choose among

NOT_LEARNT = "not judged: the arm {} does not surely beat a constant answer in {}"
NOT_MULTILINGUAL = (
    "not judged: the arm {} is not surely more multilingual than its random weights were"
)
_BY_LAYER = {
    "retrieval": "sentences",
    "translation": "words",
    "start_retrieval": "sentences, random weights",
    "start_translation": "words, random weights",
}
_START, _GAINED = "start_", "gained_"
_CONTROL = "the same models with random weights"


class MultilingualIngredientsResult(TrialsResult):
    """How alike models treat two languages, with one ingredient changed at a time.

    Tables: `arms` (one row for each arm and measure: the mean over seeds with Student's interval,
    and the difference to `all`, paired by seed), `layers` (retrieval of sentences and translation
    of words by layer; -1 is what enters the first), and `runs`.
    """

    @property
    def answer(self) -> str:
        """Whether there is any multilinguality, and which ingredient it surely owes most to."""
        evidence = self.evidence()
        found = evidence.get("multilingual_score")
        if found is None:
            why = self.reasons().get("multilingual_score", "not measured")
            return f"{NOTHING_SURE} of what makes a model multilingual: {why}."
        what = (
            "training on a text and its twin in a second vocabulary makes a small model more "
            f"multilingual by {points(found)}"
        )
        if not found.excludes(0):
            return f"{NOTHING_SURE}: {what}."
        removed = {
            c.other: evidence[f"{name}_score"]
            for name, c in _CONTRASTS.items()
            if c.one == REFERENCE and f"{name}_score" in evidence
        }
        sure = {arm: e for arm, e in removed.items() if e.surely_there}
        if not sure:
            return f"Surely: {what}."
        arm = max(sure, key=lambda name: sure[name].value)
        return f"Surely: {what}; it loses most by {arm}, {points(sure[arm])}."

    def headline(self) -> str:
        """What the model with all ingredients reaches."""
        runs = self.tables["runs"]
        own = runs[runs["arm"] == REFERENCE]
        retrieved, translated = (100 * own[name].mean() for name in ("retrieval", "translation"))
        return (
            f"{REFERENCE}: {retrieved:.0f} % of sentences retrieved, {translated:.0f} % of words "
            f"translated, over {len(own)} seeds; tags of {self.facts['tags_from']}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """All arms by all measures; retrieval and translation by layer."""
        seeds, table = int(self.facts["seeds"]), self.tables["layers"]
        about = f"trained on {self.provenance.corpus_name}"
        shown = table[(table["arm"] == REFERENCE) & (table["layer"] >= 0)]
        names = {arm: f"{arm}: {told}" for arm, told in ARMS.items()}
        return [
            self.dots(
                "arms",
                "What makes a small model of two languages multilingual",
                {name: _TOLD[name] for name in _DRAWN},
                "One row for each arm: all ingredients, and one of them changed at a time. "
                "Multilinguality is the mean of retrieval and translation. Tags are "
                "learnt in the first language alone. Dots are means over seeds with their "
                "intervals; the line is the arm with all ingredients.",
                about=about,
                reference=names[REFERENCE],
                names=names,
            ),
            drawings.curve(
                "layers",
                [
                    _band(str(measure), rows)
                    for measure, rows in shown.groupby("measure", sort=False)
                ],
                None,
                about,
                title="Sentences retrieved and words translated by layer",
                label="found (%)",
                xlabel="layer",
                note=f"Layers are numbered from 0. Bands: intervals over {seeds} seeds.",
                caption="After each layer the share of sentences and of words whose nearest "
                "neighbour in the other language is their own twin, with all ingredients and with "
                "the random weights that training began with. Bands are intervals over "
                f"{seeds} seeds.",
            ),
        ]


@dataclass(frozen=True)
class MultilingualIngredients(Trials):
    """Which ingredients make one small BERT treat two languages alike?

    Method: the second language is the text itself with other numbers for all pieces ("fake
    English"), so that both have one structure and every translation is known. A WordPiece
    vocabulary is made of the corpus, and for each arm and seed a fresh BERT is trained on both
    languages by masked words and next sentences. The reference (`all`) shares position embeddings
    and special tokens but no piece, and both languages have the same documents in the same order
    of words. Every other arm changes one of these, the depth, the width or the objective; `tlm`
    has stretches of text beside their twins in half of its rows, and is compared with `no-nsp`.
    In held-out text a sentence (the mean of its pieces) and a word (a piece alone) are found if
    their nearest neighbour in the other language, by cosine, is their twin, in both directions.
    Multilinguality is the mean of both over what enters the model and the layer after two thirds
    of it. Transfer is the accuracy of a linear probe of that layer that learns parts of speech in
    the first language and is asked in the second. All are asked of those pieces only that
    `shared-pieces` does not share. Differences are paired by seed, with Student's intervals;
    `p_adjusted` is corrected (Holm) for all arms, and claims are corrected for each other
    (Bonferroni). Random weights find some twins by their length, and more of them the wider they
    are; so the same is asked before training, and a claim holds only if the difference is surely
    there beyond that of the random weights, too. It is judged only where both models surely name
    masked tokens better than a constant answer, in both languages, and where the reference (or
    `tlm`) is surely more multilingual than its random weights were.

    Source: K et al. (2020), Dufter and Schütze (2020), and A Primer in BERTology (2020), section 8.
    Limits: fake English is as close to English as a language can be, so that real pairs need more
    than is needed here. Models and texts are small, multilinguality comes late in training, and
    what an arm lacks it might reach with more of it. A probe of frozen states stands in for
    fine-tuning. Each language has half of the documents. Few seeds give wide intervals; one gives
    no verdict. The model that is given lends its device only.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))
    result_type: ClassVar[type[Result]] = MultilingualIngredientsResult
    trains_models: ClassVar[bool] = True
    column: ClassVar[str] = "arm"

    arms: tuple[str, ...] = parameter(tuple(ARMS), "Arms to compare.")
    tags_from: str = parameter("grammar", "Corpus with parts of speech, to learn tags on.")
    pieces: int = parameter(256, "Pieces of the vocabulary of one language, at most.", minimum=64)
    layers: int = parameter(2, "Layers of the model.", minimum=1)
    heads: int = parameter(4, "Heads of each layer.", minimum=1)
    hidden: int = parameter(64, "Width of the model.", minimum=1)
    shallow: int = parameter(1, "Layers of the arm `shallow`.", minimum=1)
    wide: int = parameter(256, "Width of the arm `wide`.", minimum=1)
    narrow: int = parameter(16, "Width of the arm `narrow`.", minimum=1)
    share: float = parameter(
        0.5, "Share of the pieces that `shared-pieces` shares.", minimum=0.01, maximum=0.9
    )
    updates: int = parameter(1000, "Updates of the weights in each run.", minimum=1)
    update_tokens: int = parameter(1024, "Tokens of one update.", minimum=64)
    length: int = parameter(32, "Tokens of a row.", minimum=16)
    learning_rate: float = parameter(5e-3, "The highest learning rate.", minimum=1e-9)
    dropout: float = parameter(0.0, "Dropout while training.", minimum=0.0, maximum=0.9)
    document_size: int = parameter(8, "Examples in a row that make a document.", minimum=1)
    held_out: float = parameter(
        0.1, "Share of the documents to measure on.", minimum=0.001, maximum=0.9
    )
    sentences: int = parameter(200, "Sentences to retrieve, at most.", minimum=_FEWEST)
    words: int = parameter(200, "Frequent pieces to translate, at most.", minimum=_FEWEST)
    tag_examples: int = parameter(
        500, "Sentences to learn tags on, and to ask, at most.", minimum=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_some_of(self, "arms", ARMS)
        name = type(self).__name__
        if REFERENCE not in self.arms:
            must = f"hold {REFERENCE}, to which the others are compared"
            raise ParameterError("arms", name, must, list(self.arms))
        for field in ("hidden", "wide", "narrow"):
            if getattr(self, field) % self.heads:
                must = f"be a multiple of heads ({self.heads})"
                raise ParameterError(field, name, must, getattr(self, field))
        if self.update_tokens < 4 * self.length:
            must = f"be at least 4 rows of {self.length} tokens"
            raise ParameterError("update_tokens", name, must, self.update_tokens)

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """The arms that the contrasts are between, and the reference."""
        asked = {quantity.rpartition("_")[0] for quantity in quantities}
        used = {arm for name in asked & set(_CONTRASTS) for arm in _CONTRASTS[name][:2]}
        return {"arms": tuple(arm for arm in ARMS if arm in used | {REFERENCE})}

    @property
    def variants(self) -> Sequence[str]:
        """The arms."""
        return self.arms

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """The corpus of tags must have parts of speech."""
        from bertology.data.corpus import Field
        from bertology.data.loading import load_corpus

        for split in ("train", "validation"):
            load_corpus(self.tags_from, split=split, limit=1).require(Field.WORDS, Field.POS)

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """None: rows are made of the joined corpus, so no text of it can be too long."""
        return []

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One for each update."""
        return self.updates

    # One run -----------------------------------------------------------------------------------

    def setting(self, arm: str, shared: Bools) -> Setting:
        """What the two languages share in an arm; `shared` are the pieces that one arm shares."""
        from bertology.train.pretrain.two_languages import Setting

        return Setting(
            sentence=arm not in ("no-nsp", "tlm"),
            shared_positions=arm != "separate-positions",
            shared_special=arm != "separate-special",
            shared_pieces=shared if arm == "shared-pieces" else None,
            inverted=arm == "inverted",
            parallel=arm != "other-text",
            translation=arm == "tlm",
        )

    def recipe(self, arm: str, seed: int, languages: TwoLanguages) -> Pretraining:
        """How large the model of an arm is, and how it is trained."""
        from bertology.train.fresh import Architecture
        from bertology.train.pretrain.config import Phase, Pretraining, Stage

        return Pretraining(
            model=Architecture(
                layers=self.shallow if arm == "shallow" else self.layers,
                heads=self.heads,
                hidden={"wide": self.wide, "narrow": self.narrow}.get(arm, self.hidden),
                vocab_size=len(languages),
                max_length=2 * self.length,  # also where both languages share the first half
                dropout=self.dropout,
                output_spread=_SPREAD,
            ),
            stages=(Stage(languages.setting.objective),),
            steps=self.updates,
            batch_tokens=self.update_tokens,
            phases=(Phase(self.length),),
            learning_rate=self.learning_rate,
            compile=False,
            seed=seed,
        )

    def trial(
        self, encoder: Encoder, corpus: Corpus, *, variant: str, seed: int, reach: Reach
    ) -> xr.Dataset:
        """The measures of one model."""
        import xarray as xr

        from bertology.train.pretrain.evaluate import constant_accuracy
        from bertology.train.pretrain.loop import bert_of
        from bertology.train.pretrain.trial_text import prepare_trial_text
        from bertology.train.pretrain.two_languages import (
            TwoLanguages,
            judge_held_out,
            train_two_languages,
        )

        tokenizer = _vocabulary(corpus, self.pieces)
        shards = prepare_trial_text(
            tokenizer, corpus, document_size=self.document_size, held_out=self.held_out
        )
        shared = np.random.default_rng(seed).random(shards.vocab_size) < self.share
        shared[list(shards.special.values())] = False
        languages = TwoLanguages(
            shards, self.setting(variant, shared), length=self.length, device=encoder.device
        )
        recipe = self.recipe(variant, seed, languages)
        sentences, words = self.drawn(shards, shared, seed)
        asked = Asked(sentences, words, *self.tag_sets(tokenizer), shared)
        start = bert_of(recipe.model, languages, seed=seed).to(encoder.device)
        found = {f"{_START}{name}": of for name, of in asked.of(start, languages).items()}
        model = train_two_languages(languages, recipe, reach=reach)
        found |= asked.of(model, languages)
        judged = judge_held_out(model, languages)
        for name, of in zip(("mlm", "twin_mlm"), judged.masked, strict=True):
            found |= {f"{name}_loss": of.loss, f"{name}_accuracy": of.accuracy}
        found["sentence_accuracy"] = judged.sentence
        return xr.Dataset(found, attrs={"mlm_baseline": constant_accuracy(shards)})

    def drawn(self, shards: Shards, shared: Bools, seed: int) -> tuple[list[Ints], list[Ints]]:
        """Sentences to retrieve and words to translate: the same for all arms of a seed."""
        from bertology.train.pretrain.two_languages import held_out_sentences

        usable = [s for s in held_out_sentences(shards, self.length - 2) if not shared[s].all()]
        order = np.random.default_rng(seed).permutation(len(usable))[: self.sentences]
        counts = np.where(shared, 0, shards.counts)
        counts[list(shards.special.values())] = 0
        words = np.argsort(-counts, kind="stable")[: self.words]
        words = words[counts[words] > 0]
        if min(len(order), len(words)) < _FEWEST:
            raise DataError(
                f"The held-out text has {len(order)} sentences of at most {self.length - 2} "
                f"pieces and {len(words)} pieces; at least {_FEWEST} of both are needed.",
                hint="Give more text, a larger held-out share, or longer rows.",
            )
        return [usable[i] for i in order], [np.array([w]) for w in words]

    def tag_sets(self, tokenizer: Tokenizer) -> tuple[Tagged, Tagged]:
        """What tags are learnt on, and where they are asked."""
        from bertology.data.loading import load_corpus

        names: dict[str, int] = {}
        one, other = (
            Tagged.of(
                load_corpus(self.tags_from, split=split, limit=self.tag_examples),
                tokenizer,
                most=self.length - 2,
                names=names,
            )
            for split in ("train", "validation")
        )
        return one, other

    # The conclusion ----------------------------------------------------------------------------

    def runs(self, measured: Mapping[str, xr.Dataset]) -> Runs:
        """All runs; shares end where they must, and losses at zero."""
        limits = {n: (0.0, math.inf if n.endswith("loss") else 1.0) for n in _TOLD}
        found = super().runs(measured)
        gained = {
            f"{_GAINED}{name}": found.table[name] - found.table[f"{_START}{name}"]
            for name in _ENDINGS
        }
        limits |= {"sentence_accuracy": (0.0, 1.0), **dict.fromkeys(gained, (-1.0, 1.0))}
        return replace(found, table=found.table.assign(**gained), limits=limits)

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means over seeds, and differences to the arm with all ingredients."""
        runs = self.runs(measured)
        found = runs.corrected(_differences, together=JUDGED)
        reasons = {name: why for name in found if (why := _untold(runs, name))}
        return self.result(
            provenance,
            {**runs.tables(_TOLD, (Reference(REFERENCE),)), "layers": self._layers(measured)},
            evidence={name: e for name, e in found.items() if name not in reasons},
            reasons=reasons,
            facts={"reference": REFERENCE, "tags_from": self.tags_from, "seeds": self.seeds},
        )

    def _layers(self, measured: Mapping[str, xr.Dataset]) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for arm in self.arms:
            own = [part for at, part in measured.items() if split_part(at)[0] == arm]
            for measure, called in _BY_LAYER.items():
                curves = np.stack([part[f"{measure}_by_layer"].to_numpy() for part in own])
                for depth, values in enumerate(curves.T):
                    e = repeated(values, self.level, within=(0.0, 1.0))
                    bounds = {"share": e.value, "low": e.low, "high": e.high}
                    rows.append({"arm": arm, "measure": called, "layer": depth - 1, **bounds})
        return pd.DataFrame(rows)


def _differences(runs: Runs) -> dict[str, Estimate | None]:
    """What training gains, and all contrasts, by both things that make a model multilingual."""
    found: dict[str, Estimate | None] = {}
    pairs = {name: (c.one, c.other) for name, c in _CONTRASTS.items()}
    for measure, ending in _ENDINGS.items():
        found[f"multilingual{ending}"] = _gained(runs, measure, REFERENCE)
        beyond = runs.contrasts(f"{_GAINED}{measure}", pairs, ending=ending)
        for name, e in runs.contrasts(measure, pairs, ending=ending).items():
            # Shared pieces are said to do little, which no control can show.
            alone = e is None or name.startswith("pieces")
            found[name] = e if alone or e is None else e.with_controls({_CONTROL: beyond[name]})
    return found


def _gained(runs: Runs, measure: str, arm: str) -> Estimate | None:
    """How much more an arm has of a measure than the random weights that it began with."""
    own = runs.table[runs.table[runs.variant] == arm]
    return runs.over_seeds(own[f"{_GAINED}{measure}"], within=(-1.0, 1.0))


def _untold(runs: Runs, quantity: str) -> str:
    """Why a quantity says nothing about its ingredient; empty where it does."""
    name, _, _ = quantity.rpartition("_")
    contrast = _CONTRASTS.get(name, _Contrast(REFERENCE, REFERENCE, ""))
    for arm in (contrast.one, contrast.other):
        for measure in _MASKED:
            if not runs.learnt(measure, arm, float(runs.facts["mlm_baseline"])):
                return NOT_LEARNT.format(arm, _TOLD[measure].removesuffix(" (%)"))
    if name == "no_nsp" and not runs.learnt("sentence_accuracy", REFERENCE, 0.5):
        return NOT_LEARNT.format(REFERENCE, "next sentences")
    if contrast.multilingual:
        measure = next(m for m, ending in _ENDINGS.items() if quantity.endswith(ending))
        gate = _gained(runs, measure, contrast.multilingual)
        if gate is None or not (gate.value if math.isnan(gate.low) else gate.low) > 0:
            return NOT_MULTILINGUAL.format(contrast.multilingual)
    return ""


def _band(name: str, rows: pd.DataFrame) -> Band:
    """A line in per cent; with its interval, if it has any."""
    known = rows["low"].notna().any()
    return Band.of_columns(name, rows, "share") if known else Band(name, 100 * rows["share"])


_made: dict[tuple[str, int], Any] = {}


def _vocabulary(corpus: Corpus, pieces: int) -> Tokenizer:
    """A vocabulary of the corpus, made once for all parts of a process."""
    from bertology.train.fresh import fresh_tokenizer

    key = (corpus.fingerprint, pieces)
    if key not in _made:
        _made.clear()
        _made[key] = fresh_tokenizer(corpus.texts, vocab_size=pieces, max_length=512)
    tokenizer: Tokenizer = _made[key]
    return tokenizer
