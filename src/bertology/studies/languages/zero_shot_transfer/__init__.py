"""Zero-shot transfer: what is learnt in one language, and told in the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.data.corpus import Field
from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError
from bertology.parameters import drawn, parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.shuffled_copies import MODEL, ShuffledCopies
from bertology.studies.designs.tables import bounded
from bertology.studies.languages.zero_shot_transfer.conclusions import (
    Answers,
    Transfers,
    largest_of,
    of_pairs,
    swapped_gains,
)
from bertology.studies.languages.zero_shot_transfer.data import (
    ARCS,
    DEV,
    LABEL,
    TASKS,
    TEST,
    TRAIN,
    Frequent,
    Pieces,
    Taught,
    codes_of,
    pretraining_sizes,
    split,
    word_answers,
)
from bertology.studies.languages.zero_shot_transfer.results import ZeroShotTransferResult
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.studies.languages.zero_shot_transfer.probes import Features, Transfer

AUTO, ALL = "auto", "all"
PROBE, FINETUNE = "probe", "finetune"
_SWAPPED, _WHOLE, _FROZEN = "swapped-", "whole", "frozen-"
_NOT_LEARNT = "not judged: the task is not surely told in the language that it was learnt in"
_LONGEST_TEXT = 200_000  # sentences of a text to learn a vocabulary from


@dataclass(frozen=True)
class ZeroShotTransfer(ShuffledCopies):
    """Does what is learnt in one language hold in others, and what does that go with?

    Method: parts of speech, heads of words or labels of texts are learnt in one language (or in
    each of several) and asked in all. Frozen states are read by linear probes, at the layer
    that is best on held-out sentences of the language that is learnt in; or the whole model is
    fine-tuned, or all but its bottom layers (`--learn finetune`, labels of texts only).
    Versions of one item are never in two parts, so no scored sentence is a translation of one
    that taught. Transfer is judged where the task is surely told in the language that it was
    learnt in, beyond one answer for all; it is surely there in another language beyond that,
    beyond the most frequent answer for a word's pieces, and for probes beyond the same model
    with its weights in random order. Runs differ in the sentences that teach. Variants: the
    mean of each language's states is taken off before probes read them (centring); new rows of
    pieces, learnt on text of one language under the frozen body (`--swap`); frozen bottom
    layers (`--frozen`). Transfer is set beside the pieces that languages share, the orders of
    words of WALS, families, and the text in pre-training where the model's record tells it.
    Intervals of means and correlations are over languages, which are few; a correlation is sure
    only if a permutation of languages says so, too.

    Source: Pires et al. (2019), Wu and Dredze (2019), Libovický et al. (2019), Artetxe et al.
    (2020). Limits: pieces, orders, families and scripts go together, and a dozen languages cannot
    tell them apart. Languages differ in annotation and so in difficulty, which `own` shows. A
    vocabulary is swapped under the first source only. TLM needs another pre-training.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "language"}))
    result_type: ClassVar[type[Result]] = ZeroShotTransferResult
    fewest: ClassVar[int] = 20
    help_options: ClassVar[tuple[str, str]] = (
        "--corpus pud --languages de,en,fr --limit 200",
        "--corpus xnli --split test --train xnli --train-split validation",
    )

    examples: int = drawn(1000, "examples of each language")
    source: tuple[str, ...] = parameter(
        ("en",), "Languages to learn in, by their codes (each by itself), or `all`."
    )
    ask: str = parameter(
        AUTO,
        "Labels of texts, parts of speech (tags) or heads of words (arcs); the first that the "
        "corpus has, if not given.",
        choices=(AUTO, *TASKS),
    )
    learn: str = parameter(
        PROBE, "Probes of frozen states, or fine-tuned models.", choices=(PROBE, FINETUNE)
    )
    train: str = parameter(
        "", "Other data to learn from; if not given, seven of ten items of the corpus."
    )
    train_split: str = parameter("train", "The split of these data.")
    train_examples: int | None = parameter(
        None, "Learn from so many of them at most, in each language.", minimum=20
    )
    seeds: int = parameter(5, "Runs, each of other sentences that teach.", minimum=1)
    random_copies: int = parameter(
        5, "Copies with shuffled weights, for probes.", minimum=2, option="copies"
    )
    frozen: tuple[int, ...] = parameter(
        (), "With fine-tuning: also with the embeddings and so many bottom layers frozen."
    )
    epochs: int = parameter(3, "With fine-tuning: passes over the training data.", minimum=1)
    learning_rate: float | None = parameter(
        None, "With fine-tuning: the highest learning rate; by the model's width if not given.",
        minimum=1e-9,
    )  # fmt: skip
    swap: tuple[str, ...] = parameter(
        (), "With probes: languages for which a new vocabulary is learnt under the frozen body."
    )
    swap_text: str = parameter(
        "", "Text for it, one sentence in a line: a file name in which {language} is the code; "
        "if not given, sentences of the corpus that are not scored.",
    )  # fmt: skip
    swap_steps: int = parameter(500, "Updates of a new vocabulary.", minimum=1)

    @property
    def copies(self) -> int:
        """With shuffled weights."""
        return self.random_copies

    # What is asked --------------------------------------------------------------------------------

    def told(self, corpus: Corpus) -> str:
        """The task."""
        if self.ask != AUTO:
            return self.ask
        has = set(map(str, corpus.fields))
        known = [name for name, (_, fields, _) in TASKS.items() if fields <= has]
        if LABEL in known and corpus.task is None:
            known.remove(LABEL)
        if not known:
            raise CapabilityError(
                f"{corpus.name!r} annotates nothing that could be learnt.",
                hint="Give a corpus with labels, parts of speech or heads, such as pud or xnli.",
            )
        return known[0]

    def sources(self, corpus: Corpus) -> list[str]:
        """The codes of languages to learn in."""
        codes = codes_of(corpus)
        return list(codes) if self.source == (ALL,) else list(self.source)

    def taught(self, corpus: Corpus) -> Taught:
        """The texts and their roles."""
        shown = self.shown(corpus)
        return split(shown, self._train(corpus), self.sources(corpus)[0], self.seed)

    def _train(self, corpus: Corpus) -> Corpus | None:
        if not self.train:
            return None
        from dataclasses import replace

        from bertology.data.loading import load_split

        origin = {k: v for k, v in corpus.origin.items() if k != "languages"}
        train = load_split(
            replace(corpus, origin=origin),
            self.train_split,
            other=self.train,
            limit=self.train_examples,
        )
        if Field.LANGUAGE not in train.fields:
            return train
        # Data in many languages: the model reads those that teach, and no others.
        wanted = {*self.sources(corpus), *self.swap}
        return replace(train, examples=[e for e in train if e.get(Field.LANGUAGE) in wanted])

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The data that teach: another file under the same name is another study."""
        train = self._train(corpus)
        return {} if train is None else {"training_data": train.fingerprint}

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse languages that are not there, and tasks that cannot be learnt so."""
        super().check(encoder, corpus)
        corpus.require(Field.LANGUAGE)
        codes, task = codes_of(corpus), self.told(corpus)
        if missing := sorted(TASKS[task][1] - set(map(str, corpus.fields))):
            raise CapabilityError(
                f"The task {task!r} needs {', '.join(missing)}, which {corpus.name!r} does not "
                "have."
            )
        if len(codes) < 2:
            raise DataError(f"{corpus.name!r} is in one language only: {codes[0]}.")
        for code in (*self.sources(corpus), *self.swap):
            if code not in codes:
                raise UnknownNameError(f"language of {corpus.name}", code, codes)
        if self.learn == FINETUNE and task != LABEL:
            raise ParameterError("learn", type(self).__name__, "be probe for words", self.learn)
        if self.learn == PROBE and self.frozen:
            raise ParameterError("frozen", type(self).__name__, "go with --learn finetune", "")
        if self.swap and (self.learn == FINETUNE or task == ARCS):
            must = "go with probes of labels or parts of speech"
            raise ParameterError("swap", type(self).__name__, must, list(self.swap))
        train = self._train(corpus)
        scored = {(one.id, one.texts) for one in corpus}
        if train and any((one.id, one.texts) in scored for one in train):
            must = "be another split than the one that is scored"
            raise ParameterError("train_split", type(self).__name__, must, self.train_split)
        taught = split(self.shown(corpus), train, self.sources(corpus)[0], self.seed)
        for code in self.sources(corpus):
            place = codes.index(code)
            if not (taught.of(place, TRAIN).sum() > 1 and taught.of(place, DEV).any()):
                raise DataError(
                    f"There is nothing to learn from in {code}.",
                    hint="Name other languages (--source), or other data to learn from (--train).",
                )

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those that teach, and those that are scored."""
        return self.taught(corpus).corpus.texts

    # Measuring ------------------------------------------------------------------------------------

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """The model and its copies, and each new vocabulary; or each run of each variant."""
        if self.learn == PROBE:
            return [*super().parts(shape, corpus), *(f"{_SWAPPED}{code}" for code in self.swap)]
        variants = [_WHOLE, *(f"{_FROZEN}{layers}" for layers in self.frozen)]
        return [f"{name}-seed-{run}" for run in range(self.seeds) for name in variants]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Texts are read once, or once for each language that is learnt in."""
        return len(self.taught(corpus).corpus)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Right answers by text, of each language to learn in."""
        taught, task = self.taught(corpus), self.told(corpus)
        wanted = [taught.codes.index(code) for code in self.sources(corpus)]
        if self.learn == FINETUNE:
            return self._tuned(encoder, taught, wanted, part, context)
        if part.startswith(_SWAPPED):
            return self._swapped(encoder, taught, wanted[:1], part, context)
        # Where probes cost little, what was learnt in each target itself is set beside.
        others = [one for one in taught.taught if one not in wanted]
        sources = [*wanted, *(others if part == MODEL and task != ARCS else [])]
        reader = self.reader(encoder, part)
        found = self._probed(
            self._features(reader, taught, context), reader, taught, sources, len(wanted)
        )
        return self._dataset(encoder, taught, sources, found.hits, found)

    def _features(
        self, reader: Encoder, taught: Taught, context: Context, corpus: Corpus | None = None
    ) -> Features:
        """Of all texts, or of some of them."""
        from bertology.annotated.sentence_vectors import sentence_vectors
        from bertology.annotated.states import word_states
        from bertology.data.corpus import Corpus
        from bertology.studies.languages.zero_shot_transfer.probes import TextRows, WordRows

        texts = taught.corpus if corpus is None else corpus
        labels = self.told(texts) == LABEL
        given = texts
        if labels:
            given = Corpus.of_texts([one for e in texts for one in e.texts], name=texts.name)
        states = word_states(
            reader, given, folder=context.states, batch_tokens=context.batch_tokens
        )
        context.advance(len(texts))
        if not labels:
            return WordRows(states, reader.shape.layers + 1)
        pairs = texts[0].text_b is not None
        first = np.arange(len(texts)) * (2 if pairs else 1)
        return TextRows(sentence_vectors(states, first=False), first, pairs)

    def _probed(
        self,
        features: Any,
        encoder: Encoder,
        taught: Taught,
        sources: Sequence[int],
        wanted: int,
    ) -> Transfer:
        from bertology.studies.languages.zero_shot_transfer.probes import transferred

        corpus, task = taught.corpus, self.told(taught.corpus)
        how: dict[str, Any] = {"seeds": self.seeds, "seed": self.seed}
        if task != ARCS:
            how["beside"] = len(sources) - wanted
        if task == LABEL:
            labels = np.array([int(one) for one in corpus.labels])
            classes = len(corpus.task.labels) if corpus.task else int(labels.max()) + 1
            return transferred(features, labels, classes, taught, sources, **how)
        there = features.states.there
        if task == ARCS:
            from bertology.studies.languages.zero_shot_transfer.arcs import parsed

            heads = self._heads(taught, there)
            return parsed(features, heads, taught, sources, device=encoder.device, **how)
        names = [name for one in corpus for name in word_answers(one, task)]
        known = sorted(set(names))
        answers = np.array([known.index(name) for name in names])[there]
        return transferred(features, answers, len(known), taught, sources, **how)

    def _heads(self, taught: Taught, there: Any) -> Any:
        """Of each word with a state: its head among the text's words with one, from 1; -1: none."""
        found, start = [], 0
        for one in taught.corpus:
            heads = [int(head) for head in one.get(Field.HEADS)]
            own = there[start : start + len(heads)]
            place = np.where(own, np.cumsum(own), -1)
            found += [
                (0 if head < 0 else int(place[head]))
                for head, has in zip(heads, own, strict=True)
                if has
            ]
            start += len(heads)
        return np.array(found)

    def _tuned(
        self, encoder: Encoder, taught: Taught, sources: Sequence[int], part: str, context: Context
    ) -> xr.Dataset:
        from bertology.studies.languages.zero_shot_transfer.tuned import settings_for, tuned_hits

        name, _, run = part.rpartition("-seed-")
        frozen = None if name == _WHOLE else int(name.removeprefix(_FROZEN))
        settings = settings_for(
            encoder, frozen, seed=self.seed + int(run), epochs=self.epochs, rate=self.learning_rate
        )
        hits = tuned_hits(encoder, taught, sources, settings)
        context.advance(len(taught.corpus))
        return self._dataset(encoder, taught, sources, hits[None, None], None)

    def _swapped(
        self, encoder: Encoder, taught: Taught, sources: Sequence[int], part: str, context: Context
    ) -> xr.Dataset:
        """Kinds are a vocabulary that was learnt, and one of chance."""
        from bertology.studies.languages.zero_shot_transfer.probes import Replaced
        from bertology.train.new_vocabulary import learnt, redrawn

        code = part.removeprefix(_SWAPPED)
        place = taught.codes.index(code)
        texts = self._swap_texts(taught, place, code)
        own = taught.language == place
        some = taught.corpus
        asked = type(some)(
            some.name, [e for e, has in zip(some, own, strict=True) if has], some.fields, some.task
        )
        base = self._features(encoder, taught, context)
        other = redrawn(encoder, seed=self.seed)
        hits = list[Any]()
        for steps in (0, self.swap_steps):
            if steps:
                learnt(other, texts, steps=steps, seed=self.seed)
            rows = self._features(other, taught, Context(context.batch_tokens), asked)
            found = self._probed(Replaced(base, rows, own), encoder, taught, sources, 1)
            hits.insert(0, found.hits[:, 0])
        return self._dataset(encoder, taught, sources, np.stack(hits, axis=1), None)

    def _swap_texts(self, taught: Taught, place: int, code: str) -> list[str]:
        if not self.swap_text:
            chosen = np.flatnonzero(taught.of(place, TRAIN, DEV))
            found = [text for at in chosen for text in taught.corpus[int(at)].texts]
            if not found:
                raise DataError(
                    f"There is no text in {code} that is not scored, to learn a vocabulary from.",
                    hint="Name a text (--swap-text).",
                )
            return found
        from itertools import islice

        from bertology.train.pretrain.text import find_files, read_documents

        files = find_files([self.swap_text.replace("{language}", code)])
        lines = (line for one in read_documents(files) for line in one.sentences)
        return list(islice(lines, _LONGEST_TEXT))

    def _dataset(
        self,
        encoder: Encoder,
        taught: Taught,
        sources: Sequence[int],
        hits: Any,
        probes: Transfer | None,
    ) -> xr.Dataset:
        """Right answers of texts that are scored, and of baselines; what languages share."""
        import xarray as xr

        scored = np.flatnonzero(taught.role == TEST)
        pieces = Pieces.of(encoder, taught.corpus)
        frequent, constant, counts = self._baselines(taught, sources, pieces)
        found = xr.Dataset(
            {
                "hits": (("run", "kind", "source", "text"), hits[..., scored].astype(np.float32)),
                "counts": ("text", counts[scored]),
                "spoken": ("text", taught.language[scored]),
                "frequent": (("source", "text"), frequent[:, scored]),
                "constant": (("source", "text"), constant[:, scored]),
                "shared": (("language", "other"), pieces.shared(taught)),
                "size": ("language", pretraining_sizes(encoder, taught.codes)),
            },
            coords={
                "language": list(taught.codes),
                "source": [taught.codes[one] for one in sources],
            },
            attrs={"task": self.told(taught.corpus), "asked": self.sources(taught.corpus)},
        )
        if probes is not None:
            found["by_layer"] = (("kind", "source", "language", "layer"), probes.by_layer)
            found["picked"] = (("kind", "source"), probes.picked)
        return found

    def _baselines(
        self, taught: Taught, sources: Sequence[int], pieces: Pieces
    ) -> tuple[Any, Any, Any]:
        """Right answers (sources, texts) of both baselines, and what was asked of each text."""
        corpus, task = taught.corpus, self.told(taught.corpus)
        if task == LABEL:
            answers = [[str(label)] for label in corpus.labels]
            words: Sequence[Sequence[tuple[int, ...]]] = [[(0,)] for _ in corpus]
        else:
            answers, words = [word_answers(one, task) for one in corpus], pieces.words
        asked = [
            [(word, answer) for word, answer in zip(own, of, strict=True) if word]
            for own, of in zip(words, answers, strict=True)
        ]
        counts = np.array([len(one) for one in asked])
        frequent, constant = (np.zeros((len(sources), len(asked)), np.float32) for _ in range(2))
        for row, source in enumerate(sources):
            lesson = [one for at in np.flatnonzero(taught.of(source, TRAIN)) for one in asked[at]]
            rival = Frequent([word for word, _ in lesson], [answer for _, answer in lesson])
            frequent[row] = [sum(rival(w) == answer for w, answer in one) for one in asked]
            constant[row] = [sum(rival.constant == answer for _, answer in one) for one in asked]
        return frequent, constant, counts

    # Concluding -----------------------------------------------------------------------------------

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Gains of pairs, means over languages, relations with what is known, variants."""
        import pandas as pd

        if self.learn == FINETUNE:
            answers, copies = Answers(_stacked(measured, _WHOLE)), []
        else:
            answers = Answers(measured[MODEL])
            copies = [
                Answers(part) for name, part in measured.items() if name.startswith("shuffled")
            ]
        asked = [str(one) for one in np.atleast_1d(answers.part.attrs["asked"])]
        rows = [[str(s) for s in answers.part["source"].to_numpy()].index(code) for code in asked]
        found = Transfers(answers, copies, self.level, rows)
        transfer, centring = found.transfer(), found.centring()
        relations = found.relations(transfer, self.seed)
        evidence: dict[str, Estimate | None] = {
            "transfer_gain": transfer,
            "other_script_gain": found.other_script() if found.learnt else None,
            "centring_gain": centring,
        }
        for name, (raw, partial) in relations.items():
            evidence |= {f"{name}_correlation": raw, f"{name}_partial": partial}
        variants = list[tuple[str, Estimate]]()
        if centring is not None:
            variants.append(("centring, mean over languages", centring))
        more, own = self._variants(measured, found)
        evidence |= own
        table = [{"title": title, **bounded("gain", one)} for title, one in [*variants, *more]]
        return self.result(
            provenance,
            {
                "pairs": self._pairs(found),
                "sources": self._sources(found),
                "layers": self._layers(found),
                "relations": pd.DataFrame(
                    [
                        {"relation": name, **bounded("value", raw), "p": _p(raw),
                         **bounded("partial", partial), "partial_p": _p(partial)}
                        for name, (raw, partial) in relations.items()
                        if raw is not None
                    ],
                    columns=["relation", "value", "value_low", "value_high", "p", "partial",
                             "partial_low", "partial_high", "partial_p"],
                ),
                "variants": pd.DataFrame(
                    table, columns=["title", "gain", "gain_low", "gain_high"]
                ),
            },
            evidence=evidence,
            reasons=self._reasons(found),
            facts={"task": str(answers.part.attrs["task"]), "learn": self.learn},
        )  # fmt: skip

    def _reasons(self, found: Transfers) -> dict[str, str]:
        if not found.learnt:
            return {"": _NOT_LEARNT}
        few = "not judged: too few languages, or they do not differ in this"
        return {
            "": few,
            "swap_gain": "not judged: no vocabulary was swapped (--swap)",
            "frozen_gain": "not judged: no layers were frozen (--learn finetune --frozen)",
            "data_correlation": "not judged: the model does not tell what it was trained on, or "
            "the languages are too few",
            "other_script_gain": "not judged: all languages have one script",
            "centring_gain": "not judged: fine-tuned models are not centred, or languages are few",
        }

    def _variants(
        self, measured: Mapping[str, xr.Dataset], found: Transfers
    ) -> tuple[list[tuple[str, Estimate]], dict[str, Estimate | None]]:
        """Swapped vocabularies and frozen layers; nothing where the source was not learnt."""
        shown: list[tuple[str, Estimate]] = []
        evidence: dict[str, Estimate | None] = {}
        if not found.learnt or found.learnt[0] != found.asked[0]:
            return shown, evidence
        parts = {
            name.removeprefix(_SWAPPED): Answers(part)
            for name, part in measured.items()
            if name.startswith(_SWAPPED)
        }
        mean, each = swapped_gains(parts, self.level)
        evidence["swap_gain"] = mean
        for code, (gain, beyond) in each.items():
            shown.append((f"new vocabulary: {code}", gain))
            shown.append((f"new vocabulary beyond one of chance: {code}", beyond))
        whole = found.answers.hits[:, 0]
        each_frozen = []
        for layers in self.frozen if self.learn == FINETUNE else ():
            own = Answers(_stacked(measured, f"{_FROZEN}{layers}")).hits
            less = own[:, 0] - whole
            level = 1 - (1 - self.level) / len(self.frozen)
            errors = found.answers.errors(less)[found.learnt]
            more = of_pairs(found.others(found.answers.of(less)), found.places, level, errors)
            if more is not None:
                each_frozen.append(more)
                shown.append((f"bottom {layers} layers frozen", more))
        evidence["frozen_gain"] = largest_of(each_frozen) if each_frozen else None
        return shown, evidence

    def _pairs(self, found: Transfers) -> pd.DataFrame:
        import pandas as pd

        answers, known = found.answers, found.known()
        cells = [
            (row, code)
            for row in found.asked
            for code in range(len(answers.codes))
            if code != answers.sources[row] and answers.asked(code).any()
        ]
        level = 1 - (1 - self.level) / max(len(cells), 1)
        rows = []
        for row, code in cells:
            gain = found.pair(row, code, level)
            source = answers.sources[row]
            sure = row in found.learnt and gain.surely_there
            rows.append(
                {
                    "source": answers.codes[source],
                    "target": answers.codes[code],
                    **self._of_cell(found, row, code, gain),
                    "shared": known["shared"][source, code],
                    "order": known["order"][source, code],
                    "sure": bool(sure),
                }
            )
        return pd.DataFrame(rows)

    def _sources(self, found: Transfers) -> pd.DataFrame:
        import pandas as pd

        level = 1 - (1 - self.level) / max(len(found.asked), 1)
        places = found.answers.sources
        return pd.DataFrame(
            [
                {
                    "source": found.answers.codes[places[row]],
                    **self._of_cell(
                        found, row, places[row], found.answers.beyond_constant(row, level)
                    ),
                    "layer": int(found.answers.part["picked"].to_numpy()[0, row]) - 1
                    if "picked" in found.answers.part
                    else -1,
                    "learnt": row in found.learnt,
                }
                for row in found.asked
            ]
        )

    def _of_cell(self, found: Transfers, row: int, code: int, gain: Estimate) -> dict[str, float]:
        answers = found.answers
        scores = answers.shares().mean(axis=0)
        shuffled = [one.shares().mean(axis=0)[row, code] for one in found.copies]
        own = [at for at, source in enumerate(answers.sources) if source == code]
        centred = answers.hits.shape[1] > 1
        return {
            "score": scores[row, code],
            "centred": answers.shares(1).mean(axis=0)[row, code] if centred else np.nan,
            "baseline": scores[row, code] - answers.gains.mean(axis=0)[row, code],
            "shuffled": float(np.mean(shuffled)) if shuffled else np.nan,
            "own": scores[own[0], code] if own else np.nan,
            **bounded("gain", gain),
        }

    def _layers(self, found: Transfers) -> pd.DataFrame:
        import pandas as pd

        columns = ["layer", "source", "transfer", "centred"]
        if "by_layer" not in found.answers.part:
            return pd.DataFrame({name: [] for name in columns})
        shares = found.answers.part["by_layer"].to_numpy()  # (kinds, sources, languages, layers)
        rows, places = found.asked, [found.answers.sources[row] for row in found.asked]
        others = shares[:, rows].copy()
        own = np.stack([others[0, at, place] for at, place in enumerate(places)])
        for at, place in enumerate(places):
            others[:, at, place] = np.nan
        of_kinds = np.nanmean(others, axis=(1, 2))  # (kinds, layers)
        layers = np.arange(shares.shape[3]) - 1
        values = (layers, own.mean(axis=0), of_kinds[0], of_kinds[1])
        return pd.DataFrame(dict(zip(columns, values, strict=True)))


def _stacked(measured: Mapping[str, xr.Dataset], variant: str) -> xr.Dataset:
    """The runs of a variant as one part."""
    import xarray as xr

    parts = [part for name, part in measured.items() if name.startswith(f"{variant}-seed-")]
    hits = xr.concat([part["hits"] for part in parts], dim="run")
    return parts[0].drop_vars("hits").assign(hits=hits)


def _p(found: Estimate | None) -> float:
    return float("nan") if found is None or found.tested is None else found.tested[1]
