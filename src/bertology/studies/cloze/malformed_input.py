"""Malformed input: do answers stay the same when the text is broken?"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.clozes import MASK
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.classes import has_classes
from bertology.data.words.malformed import DRAWN, KINDS, REMOVED, Sentence, broken, role_spans
from bertology.errors import BertologyError, CapabilityError, DataError, ParameterError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.answer_flips import flip_tests, kept_answers
from bertology.stats.best_of_many import smallest_of
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.clozes import pair_blank, too_long
from bertology.studies.designs.parts import in_order, start_of
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.words.alignment import Span
    from bertology.model.encoder import Encoder


# What a model answers to a text and to its broken forms, blanks and classes alike.
#
# An `Item` is what has one right answer: a text with a blank (a cloze, or a minimal pair of which
# the differing word is the blank), or a text with a label. Its `forms` are broken texts. An answer
# is a distribution, over the vocabulary or over the classes; `compared` keeps a few numbers of
# each, beside those of other texts of the corpus in the place of the own one.


INTACT, ANOTHER = "intact", "another text"
OTHERS = 5  # other texts that are put in the place of each
MEASURED = ("top", "right", "rank", "log_probability", "kl")

Given = str | tuple[str, str]
Form = tuple[str, int]  # the kind and the number of the draw


@dataclass(frozen=True)
class Item:
    """A text whose right answer is known."""

    number: int  # of the example, among those that are looked at
    example: Example  # with its words, where they are annotated; the answer in its blank
    blank: Span | None
    answers: tuple[int, ...]  # pieces, or the class
    candidates: tuple[int, ...] | None = None
    """Pieces to choose from, the right ones among them; none where they are not single pieces."""
    forms: Mapping[Form, Given] = field(default_factory=dict)

    @property
    def intact(self) -> Given:
        """The text as it is, its blank masked."""
        text = self.example.text
        if self.blank is None:
            return self.example.given
        return f"{text[: self.blank[0]]}{MASK}{text[self.blank[1] :]}"


def items_of(encoder: Encoder, corpus: Corpus, *, first: int = 0) -> list[Item]:
    """The examples that can be asked; answers of several pieces, say, cannot."""
    from bertology.model.masked_lm.clozes import one_piece_words

    if encoder.head == "classification":
        return [Item(first + i, e, None, (int(e.label or 0),)) for i, e in enumerate(corpus)]
    filled = [_filled(e, annotated=has_classes(corpus.fields)) for e in corpus]
    words = {word for one in filled if one for side in one[2:] for word in side}
    pieces, found = one_piece_words(encoder, sorted(words)), []
    for number, one in enumerate(filled, first):
        if one is None:
            continue
        example, blank, answers, candidates = one
        right = tuple(dict.fromkeys(pieces[word] for word in answers if word in pieces))
        chosen = tuple(dict.fromkeys(pieces.get(word, -1) for word in candidates))
        if not right or (candidates and not set(right) & set(chosen)):
            continue
        # A choice between some of the candidates only would be another one.
        choice = None if not candidates else () if -1 in chosen else chosen
        found.append(Item(number, example, blank, right, choice))
    cut = too_long(encoder, [str(item.intact) for item in found])
    return [item for i, item in enumerate(found) if i not in cut]


def _filled(
    example: Example, *, annotated: bool
) -> tuple[Example, Span, tuple[str, ...], tuple[str, ...]] | None:
    """The text with its answer in place, where the blank is, answers and candidates."""
    about = example.annotations
    if about.get(Field.ANSWER) is None:
        found = pair_blank(example.text, str(about.get(Field.CONTRAST) or ""))
        if found is None:
            return None
        both = (found.good, found.bad)
        return example, (found.start, found.end), both[:1], both
    answers, choices = (_words(about.get(name)) for name in (Field.ANSWER, Field.CANDIDATES))
    at = example.text.find(MASK)
    if at < 0 or example.text.count(MASK) > 1 or not answers:
        return None
    if annotated:  # as its words are, those of a tagger would not fit
        return example, (at, at + len(MASK)), answers, choices
    text = f"{example.text[:at]}{answers[0]}{example.text[at + len(MASK) :]}"
    return Example(example.id, text), (at, at + len(answers[0])), answers, choices


def _words(given: object) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(given or ())  # type: ignore[arg-type]
    return tuple(str(word).strip() for word in words)


@dataclass(frozen=True)
class Forms:
    """How items are broken."""

    kinds: Sequence[str]
    draws: int
    kept: int
    tagger: str
    seed: int

    def break_all(self, items: Sequence[Item], fields: frozenset[Field]) -> tuple[list[Item], str]:
        """The items with their forms, and who says what their subjects and objects are."""
        from bertology.annotated.tagged_batches import annotated

        if not items or not set(self.kinds) & set(REMOVED):
            return [replace(item, forms=self._forms(item)) for item in items], ""
        known = fields if has_classes(fields) else frozenset({Field.TEXT})
        corpus, who = annotated(Corpus("items", [i.example for i in items], known), self.tagger)
        with_words = (replace(i, example=e) for i, e in zip(items, corpus, strict=True))
        return [replace(i, forms=self._forms(i)) for i in with_words], who

    def _forms(self, item: Item) -> dict[Form, Given]:
        """Those that differ from the text; both texts of a pair are broken."""
        blanks = [item.blank, *(None for _ in item.example.texts[1:])]
        made = [
            Sentence.of(text, blank) for text, blank in zip(item.example.texts, blanks, strict=True)
        ]
        found: dict[Form, Given] = {}
        for kind in self.kinds:
            removed: list[list[Span]] = [[] for _ in made]
            if kind in REMOVED:
                removed = role_spans(item.example, REMOVED[kind], blanks)
            for draw in range(self.draws if kind in DRAWN else 1):
                rng = random.Random(f"{self.seed}-{item.number}-{kind}-{draw}")
                texts = [
                    broken(one, kind, rng, kept=self.kept, removed=gone)
                    for one, gone in zip(made, removed, strict=True)
                ]
                if any(text is not None for text in texts):
                    whole = [t or own for t, own in zip(texts, item.example.texts, strict=True)]
                    found[kind, draw] = (whole[0], whole[1]) if len(whole) > 1 else whole[0]
        return found


def compared(
    items: Sequence[Item],
    answers: Iterable[NDArray[np.float32]],
    kinds: Sequence[str],
    draws: int,
) -> dict[str, Floats]:
    """Of each item, kind (intact, broken, another text) and draw: what is said, how right it is.

    `answers` are log-probabilities of each item's intact text, then of its forms in their order.
    Arrays (N, K, D) of the likeliest answer, whether it is right, the rank of the right one and its
    log-probability, and the divergence from what is said of the intact text; NaN: no such form.
    """
    rows, said = [INTACT, *kinds, ANOTHER], iter(answers)
    found = {n: np.full((len(items), len(rows), max(draws, OTHERS)), np.nan) for n in MEASURED}
    before: deque[tuple[Floats, int]] = deque(maxlen=OTHERS)
    first: list[tuple[int, Floats]] = []  # those that have few others before them

    def keep(at: int, kind: str, draw: int, intact: Floats, other: Floats) -> None:
        for name, value in zip(MEASURED, _numbers(items[at], intact, other), strict=True):
            found[name][at, rows.index(kind), draw] = value

    for at, item in enumerate(items):
        intact = np.asarray(next(said), np.float64)
        keep(at, INTACT, 0, intact, intact)
        for kind, draw in item.forms:
            keep(at, kind, draw, intact, np.asarray(next(said), np.float64))
        for draw, (other, _) in enumerate(before):
            keep(at, ANOTHER, draw, intact, other)
        if len(before) < OTHERS:
            first.append((at, intact))
        before.append((intact, at))
    for at, intact in first:  # the last texts come before the first ones
        for draw, (other, number) in enumerate(before, at):
            if draw < OTHERS and number > at:
                keep(at, ANOTHER, draw, intact, other)
    return found


def _numbers(item: Item, intact: Floats, other: Floats) -> Iterator[float]:
    """The numbers of MEASURED, for what is said of another text than the intact one."""
    right, own = set(item.answers), other[list(item.answers)].max()
    yield int(other.argmax())
    if item.candidates == ():
        yield np.nan
    else:
        among = np.array(range(len(other)) if item.candidates is None else item.candidates)
        best = among[other[among] == other[among].max()]
        yield sum(int(one) in right for one in best) / len(best)
    yield float((other > own).sum() + ((other == own).sum() + 1) / 2)
    yield float(own)
    yield float((np.exp(intact) * (intact - other)).sum()) if other is not intact else 0.0


_SHORT = "The answers do not surely depend on the text, so that this says little."


class MalformedInputResult(Result):
    """What becomes of answers when texts are broken.

    Table `forms`: one row for each kind of broken text, the intact text first and another text of
    the corpus last. `same`: the share of answers that stay; `unrelated`: how often the answers to
    two different texts agree; `kept`: where `same` lies between that (0) and no change (1); `right`
    and `lost`: right answers, and how many fewer than in the same texts intact; `rank` (median),
    `probability` (mean) of the right answer; `kl`: the divergence from the intact answer, in nats.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "forms": {
            "same": "%", "unrelated": "%", "right": "%", "kept": "%", "lost": "points", "bag": "%",
        }
    }  # fmt: skip

    @property
    def answer(self) -> str:
        """How many answers survive shuffling, beside those of unrelated texts."""
        known = self._rows()
        if known.empty:
            return f"{NOTHING_SURE}: no text of the corpus is changed by any kind of breaking."
        first = known.iloc[0]
        same = of_row(first, ("same", "same_low", "same_high"))
        lost = of_row(first, ("lost", "lost_low", "lost_high"))
        found = (
            f"Broken texts ({first['form']}) get the same answer in {percent(same)}, two "
            f"different texts in {100 * float(first['unrelated']):.0f} %, and {points(lost)} of "
            "right answers are lost."
        )
        return found if self.facts["informed"] else f"{found} {_SHORT}"

    def headline(self) -> str:
        """How many texts were asked, and who knew subjects from objects."""
        facts = self.facts
        told = f"; subjects and objects by {facts['tagger']}" if facts["tagger"] else ""
        left = f", {facts['left_out']} left out" if facts["left_out"] else ""
        return f"{facts['items']} {facts['asked']}{left}{told}"

    def drawings(self) -> Sequence[Drawing]:
        """Answers that stay, and right answers that are lost."""
        more = " Diamonds: what a bag of words gets right." if "bag" in self.tables["forms"] else ""
        rows = self._rows()
        return [
            drawings.dots(
                "forms",
                [
                    Dots.of_columns("same answer (%)", rows, "same", bars="unrelated"),
                    Dots.of_columns("kept beyond unrelated texts (%)", rows, "kept", level=50),
                ],
                rows["form"],
                self.about,
                title="Answers to broken texts",
                caption="One row for each way to break a text. Left: the per cent of answers that "
                "stay as they were; the grey bar is how often answers to two different texts "
                "agree. Right: where that lies between the grey bar (0) and no change (100). "
                "Intervals hold for all rows together.",
                note="Grey bar: answers to two different texts agree. Dashed: one half.",
            ),
            Drawing(
                "right",
                self._draw_right,
                "One row for each way to break a text. Left: the per cent of right answers, the "
                "dashed line that of all intact texts. Right: how many points fewer are right "
                f"than in the same texts intact, with intervals for all rows together.{more}",
            ),
        ]

    def _rows(self) -> pd.DataFrame:
        table = self.tables["forms"]
        return table[table["form"].isin(KINDS) & (table["n"] > 1)]

    def _draw_right(self) -> Figure:
        rows = self._rows()
        intact = self.tables["forms"].iloc[0]
        bag = 100 * rows["bag"].to_numpy() if "bag" in rows else None
        level, share = 100 * float(intact["right"]), 100 * rows["right"].to_numpy()
        right = Dots("right (%)", share, level=level, hollow=bag)
        return interval_dots(
            [right, Dots.of_columns("lost (points)", rows, "lost", level=0)],
            [str(name) for name in rows["form"]],
            title=f"Right answers to broken texts\n{self.about}",
            note="Dashed: all texts intact; nothing lost."
            + ("" if bag is None else " Diamond: a bag of words."),
        )


CLAIMED = ("shuffled", "first-half", "few-words", "no-subject", "no-object")
"""What the literature names; the other kinds are only told."""
_FEWEST = 20  # items that a kind must have to be judged
_LEARNT = 20_000  # examples that the bag of words learns from
_UNINFORMED = (
    "not judged: the right answer is not surely likelier in its own text than in another one, so "
    "that answers that stay the same would say nothing"
)
_ALIKE = "not judged: nearly all answers are the same, whatever the text"
_FEW = f"not judged: fewer than {_FEWEST} texts are changed by shuffling"


@dataclass(frozen=True)
class MalformedInput(Tagged):
    """Do answers stay the same when words are shuffled, cut off, or lack subject or object?

    Method: a masked language model fills blanks (clozes, or the word in which a minimal pair
    differs), a classifier gives labels. Each text is also given broken: words shuffled (all of
    them, two or three that stay together, or within windows of three), reversed, the first half or
    a few words next to the blank only, without the phrases of subjects, without those of objects;
    the blank stays where it is, and both texts of a pair are broken. What a break does not change
    is left out and counted. Told are answers that stay the same, right answers (among the
    candidates where there are any), the rank and probability of the right one, and the divergence
    of the two distributions. A model that gives the same answers to all texts keeps them here, too;
    so `kept` is the share of answers that stay, set between the share in which answers to two
    different texts agree (0) and 1: Cohen's kappa. For tasks with training data, a bag of words
    learns them and answers the same broken texts. Intervals are over texts, for all kinds together.

    Source: Ettinger (2020), as A Primer in BERTology tells it. Limits: claims are judged only where
    the right answer is surely likelier in its own text than in others. Capitals and commas go with
    their words. Without a treebank, a tagger says which words are subjects and objects, and errs;
    it sees the text with its answer. Blanks of several pieces are left out. Texts of a corpus are
    taken as independent.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}), head="saved")
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = MalformedInputResult
    block: ClassVar[int] = 1024
    fills_gpu: ClassVar[bool] = True

    kinds: tuple[str, ...] = parameter(KINDS, "Ways to break a text.")
    draws: int = parameter(3, "Random orders of each text.", minimum=1, maximum=50)
    kept: int = parameter(3, "Words that few-words leaves.", minimum=1, maximum=100)
    bag: bool = parameter(
        True, "Let a bag of words learn the task and answer the same texts, where it can."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.kinds or not set(self.kinds) <= set(KINDS):
            must = f"be some of {', '.join(KINDS)}"
            raise ParameterError("kinds", "MalformedInput", must, list(self.kinds))

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse models that answer nothing, and corpora without a right answer."""
        super().check(encoder, corpus)
        if encoder.head == "classification":
            if corpus.task is None or corpus.task.kind != "classification":
                raise CapabilityError(
                    f"{encoder.name!r} gives labels, and {corpus.name!r} has no classes.",
                    hint="Give the task that it was fine-tuned on (--task).",
                )
            return
        encoder.require("masked-lm")
        if not {"answer", "contrast"} & set(corpus.fields):
            raise CapabilityError(
                f"{corpus.name!r} has no blanks: it needs the field answer (texts with [MASK]) or "
                "contrast (minimal pairs).",
                hint="Give such a corpus (--corpus cprag-102), or a fine-tuned model and its task. "
                "See what corpora carry with: bertology datasets",
            )
        if len(items_of(encoder, self.shown(corpus))) < 2:
            raise DataError(
                f"Fewer than two texts of {corpus.name!r} have one blank [MASK] and an answer that "
                f"is a single piece of the vocabulary of {encoder.name!r}.",
                hint="Give more texts, or a model with a larger vocabulary.",
            )

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The tagger, and what a bag of words learns from."""
        train = self._train(corpus)
        return super().ingredients(corpus) | (
            {} if train is None else {"training_data": train.fingerprint}
        )

    def _train(self, corpus: Corpus) -> Corpus | None:
        """What a bag of words learns from; None where there is nothing but the corpus itself."""
        from bertology.data.loading import load_split

        if not self.bag or corpus.task is None or corpus.task.kind != "classification":
            return None
        if corpus.split == "train" or not corpus.origin:
            return None
        try:
            return load_split(corpus, "train", limit=_LEARNT)
        except BertologyError:  # a lone file has no other split
            return None

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """What is said of each text, of its forms, and of other texts."""
        import xarray as xr

        block, rows = self.of_block(part, corpus), [INTACT, *self.kinds, ANOTHER]
        given = items_of(encoder, block, first=start_of(part))
        random.Random(f"{self.seed}-{part}").shuffle(given)  # other texts are no neighbours
        forms = Forms(self.kinds, self.draws, self.kept, self.tagger, self.seed)
        items, who = forms.break_all(given, corpus.fields)
        items = _that_fit(encoder, items)
        answers = self._answers(encoder, corpus, items, context)
        found = compared(items, answers, self.kinds, self.draws)
        names = ("example", "form", "draw")
        data = {name: (names, values) for name, values in found.items()}
        train = self._train(corpus) if encoder.head == "classification" else None
        if train is not None and items:
            data["bag"] = (names, _bag(train, corpus, items, found["top"].shape, rows))
        context.advance(len(block))
        return xr.Dataset(
            data,
            {"form": rows},
            {
                "left_out": len(block) - len(items),
                "tagger": who,
                "asked": "labels" if encoder.head == "classification" else "blanks",
            },
        )

    def _answers(
        self, encoder: Encoder, corpus: Corpus, items: Sequence[Item], context: Context
    ) -> Iterator[NDArray[np.float32]]:
        """Log-probabilities for each intact text and its forms."""
        texts = [text for item in items for text in (item.intact, *item.forms.values())]
        if encoder.head != "classification":
            from bertology.model.masked_lm.clozes import Clozes
            from bertology.model.masked_lm.questions import Question

            engine = Clozes(encoder, top_k=1, tokens_per_batch=context.batch_tokens)
            yield from engine.distributions(Question(str(text)) for text in texts)
            return
        import torch

        from bertology.studies.designs.sweeps import class_order

        order = class_order(encoder, corpus.task)
        found = np.empty((len(texts), len(order)), np.float32)
        for batch in encoder.batches(texts, tokens_per_batch=context.batch_tokens):
            logits = encoder.run(batch).logits.float()[:, order]
            found[list(batch.indices)] = torch.log_softmax(logits, dim=-1).cpu().numpy()
        yield from found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares with intervals over texts, corrected for the kinds of breaking."""
        parts = list(in_order(measured))
        names = [str(name) for name in parts[0]["form"].to_numpy()]
        bag = ("bag",) if "bag" in parts[0] else ()
        said = {
            name: np.concatenate([part[name].to_numpy().astype(np.float64) for part in parts])
            for name in (*MEASURED, *bag)
        }  # (N, K, D) each
        own = self._own_text(said["log_probability"])
        informed = own is not None and own.low > 0.5
        table, kept, alike = self._table(said, names)
        judged = {name: kept[name] for name in CLAIMED if name in kept}
        evidence: dict[str, Estimate | None] = {"own_text_preference": own}
        reasons = {}
        if not informed:
            reasons = dict.fromkeys(("least_kept", "shuffling_cost"), _UNINFORMED)
        elif alike or "shuffled" not in judged:
            reasons = dict.fromkeys(("least_kept",), _ALIKE if alike else _FEW)
        if "least_kept" not in reasons:
            # The smallest share over kinds: surely high where each of them is
            found = list(judged.values())
            level = 1 - (1 - found[0].level) / len(found)
            evidence["least_kept"] = smallest_of(
                [one.value for one in found],
                [one.low for one in found],
                [max(one.at_level(level).high, one.value) for one in found],
                n=[one.n for one in found],
                level=found[0].level,
                unit="texts",
            )
        if informed:
            evidence["shuffling_cost"] = self._cost(said, names)
            reasons.setdefault("shuffling_cost", _FEW)
        facts = parts[0].attrs
        return self.result(
            provenance,
            {"forms": table},
            evidence=evidence,
            reasons=reasons,
            facts={
                "items": len(said["top"]),
                "left_out": sum(int(part.attrs["left_out"]) for part in parts),
                "asked": str(facts["asked"]),
                "tagger": str(facts["tagger"]),
                "informed": int(informed),
                "judged": " ".join(judged),
            },
        )

    def _own_text(self, scores: Floats) -> Estimate | None:
        """How often the right answer is likelier in its own text than in another one."""
        own, others = scores[:, :1, 0], scores[:, -1]
        won = np.where(np.isnan(others), np.nan, (own > others) + 0.5 * (own == others))
        return self._mean(_mean_of(won), (0.0, 1.0))

    def _cost(self, said: Mapping[str, Floats], names: Sequence[str]) -> Estimate | None:
        """Right answers lost by shuffling."""
        if "shuffled" not in names:
            return None
        right = said["right"]
        lost = right[:, 0, 0] - _mean_of(right[:, names.index("shuffled")])
        return self._mean(lost, (-1.0, 1.0)) if np.isfinite(lost).sum() >= _FEWEST else None

    def _mean(
        self, values: Floats, support: tuple[float, float], families: int = 1
    ) -> Estimate | None:
        """Of numbers that lie in the support; shares and differences of shares are within 1."""
        known = values[np.isfinite(values)]
        if len(known) < 2:
            return None
        within = max(support[0], -1.0), min(support[1], 1.0)
        means = self.means(known[None], within=within, support=support, families=families)
        found = means.estimate(0)
        return None if found is None else replace(found.counting("texts"), level=self.level)

    def _table(
        self, said: Mapping[str, Floats], names: Sequence[str]
    ) -> tuple[pd.DataFrame, dict[str, Estimate], bool]:
        """A row for each form; what is kept of each kind alone; whether all answers are alike."""
        import pandas as pd

        rows, alone, alike, families = [], dict[str, Estimate](), False, len(self.kinds)
        top, right = said["top"], said["right"]
        for at, name in enumerate(names):
            form = {key: _mean_of(values[:, at]) for key, values in said.items()}
            there = np.isfinite(form["top"])
            row: dict[str, object] = {"form": name, "n": int(there.sum())}
            row["unchanged"] = int((~there).sum()) if name in self.kinds else 0
            same = kept_answers(top[:, 0, 0], top[:, at]) if name != INTACT else None
            if same is not None:
                row |= self._ends("same", self._mean(same.same, (0.0, 1.0), families))
                row["unrelated"] = same.unrelated
                alike = alike or (name in CLAIMED and bool(np.isnan(same.kept)))
                row |= self._ends("kept", self._mean(same.values, same.support, families))
                found = self._mean(same.values, same.support)
                if name in self.kinds and found is not None and found.n >= _FEWEST:
                    alone[name] = found
                lost = np.where(there, right[:, 0, 0] - form["right"], np.nan)
                row |= self._ends("lost", self._mean(lost, (-1.0, 1.0), families))
                row |= self._ends("kl", self._divergence(form["kl"], families))
            if there.any():
                row |= {
                    "right": np.nanmean(form["right"]),
                    "rank": np.nanmedian(form["rank"]),
                    "probability": np.nanmean(np.exp(said["log_probability"][there, at])),
                }
                row |= {"bag": np.nanmean(form["bag"])} if "bag" in form and name != ANOTHER else {}
            rows.append(row)
        changes = np.stack(
            [
                np.nan_to_num(np.sign(_mean_of(right[:, names.index(k)]) - right[:, 0, 0]))
                for k in self.kinds
            ]
        )
        _, p = flip_tests(changes, resamples=self.resamples, seed=self.seed)
        table = pd.DataFrame(rows)
        table.loc[table["form"].isin(self.kinds), "p"] = p
        return table, alone, alike

    def _divergence(self, values: Floats, families: int) -> Estimate | None:
        known = values[np.isfinite(values)]
        if len(known) < 2:
            return None
        return self.means(known[None], within=(0.0, np.inf), families=families).estimate(0)

    @staticmethod
    def _ends(name: str, found: Estimate | None) -> dict[str, object]:
        values = (np.nan,) * 3 if found is None else (found.value, found.low, found.high)
        return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _mean_of(values: Floats) -> Floats:
    """Over draws (N, D), where there are any."""
    drawn = np.isfinite(values)
    total = np.where(drawn, values, 0.0).sum(axis=1)
    return np.where(drawn.any(axis=1), total / np.maximum(drawn.sum(axis=1), 1), np.nan)


def _that_fit(encoder: Encoder, items: Sequence[Item]) -> list[Item]:
    """Without forms that are too long: a word that comes first may have more pieces."""
    if encoder.head == "classification":
        return list(items)
    keys = [(at, form) for at, item in enumerate(items) for form in item.forms]
    cut = too_long(encoder, [str(items[at].forms[form]) for at, form in keys])
    gone = {keys[i] for i in cut}
    return [
        replace(item, forms={f: text for f, text in item.forms.items() if (at, f) not in gone})
        for at, item in enumerate(items)
    ]


def _bag(
    train: Corpus, corpus: Corpus, items: Sequence[Item], shape: tuple[int, ...], rows: list[str]
) -> Floats:
    """Whether a bag of words that learnt the task is right about each text and form."""
    from bertology.data.corpus import Corpus, Example
    from bertology.train.baselines import bag_of_words

    keys, examples = list[tuple[int, int, int]](), list[Example]()
    for at, item in enumerate(items):
        texts = {(INTACT, 0): item.intact, **item.forms}
        for (kind, draw), text in texts.items():
            keys.append((at, rows.index(kind), draw))
            one, two = (text, None) if isinstance(text, str) else text
            examples.append(Example(str(len(keys)), one, two, item.answers[0]))
    scored = Corpus("forms", examples, corpus.fields, corpus.task)
    said, found = bag_of_words(train, scored), np.full(shape, np.nan)
    for (at, row, draw), answer in zip(keys, said, strict=True):
        found[at, row, draw] = float(int(answer) == items[at].answers[0])
    return found
