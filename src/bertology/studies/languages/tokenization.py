"""Tokenisation: into how many pieces are languages cut, and which are not known at all?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.data.corpus import Example, Field
from bertology.data.languages import languages, name_of
from bertology.data.words.alignment import Span, align
from bertology.data.words.piece_words import known_words
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.report.figures.named_grid import named_grid
from bertology.results.answers import listed, of_row, percent, plain
from bertology.results.comparison import over_rows
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.ranking import Ranking
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.contrasts import ratio_of_means
from bertology.stats.partial_means import PartialMeans, partial_means
from bertology.studies.designs.blocks import Sampled
from bertology.studies.designs.tables import bounded, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.arrays import Floats
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

_WITHOUT_SPACES = frozenset({"Han", "Japanese", "Thai"})
_SPELT = 0.5  # of the pieces are one letter: the language is spelt
_ALL = "all texts"  # what the one row is called where texts have no language
_NO_LETTERS = _WITHOUT_SPACES | {"Hangul"}  # a character of these is a syllable or a word
_SHARES = ("unknown", "whole", "letters", "cut")
_COUNTS = ("pieces", "unknown", "words", "whole", "letters", "cut", "characters", "bytes")
_SPACES, _ANNOTATED, _CHARACTERS = "what spaces separate", "annotated ones", "characters"
_NO_PARITY = "not judged: texts of several languages, the reference among them, share no items"


class TokenizationResult(Result):
    """What a tokenizer makes of each language.

    Table `languages`: means over texts of the shares of `unknown` pieces, of words that are one
    known piece (`whole`), of pieces that are one letter (`letters`) and of texts that are `cut` at
    the longest input; pieces per word (`fertility`; `words` says what a word is), per character and
    per byte of UTF-8; `parity`, how many times as many pieces as in the reference language the same
    items take; how many kinds of pieces occur (`used`), and their share of the `vocabulary`.
    `not_known`: surely more unknown pieces than `beyond`. Bounds of a column hold for all languages
    together. Table `shared`: the kinds of pieces that two languages both use, as a share of those
    that either uses (`jaccard`), and the share of all pieces of the first language that the other
    one uses, too (`covered`).
    """

    place = 1
    strongest: ClassVar[Mapping[str, Ranking]] = {"languages": "unknown", "shared": "jaccard"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "languages": dict.fromkeys((*_SHARES, "vocabulary"), "%"),
        "shared": {"jaccard": "%", "covered": "%"},
    }

    def with_sure(self, name: str) -> pd.DataFrame:
        """Languages that are surely not known come first."""
        table = self.tables[name]
        return table.assign(sure=table["not_known"]) if name == "languages" else table

    @property
    def not_known(self) -> list[str]:
        """Codes of the languages that this tokenizer surely does not know, the least known first.

        Joins leave these out: what a model does with [UNK] tells nothing of a language.
        """
        table = self.shown("languages")
        return [str(code) for code in table["language"][table["not_known"]]]

    @property
    def spelt(self) -> list[str]:
        """Codes of the languages most of whose pieces surely are one letter.

        No piece need be unknown, but the tokenizer was not made for them: they have no words in it.
        """
        table = self.shown("languages")
        return [str(code) for code in table["language"][table["letters_low"] > _SPELT]]

    def _estimate(self, row: pd.Series[float], column: str) -> Estimate:
        return of_row(row, (column, f"{column}_low", f"{column}_high"))

    @property
    def answer(self) -> str:
        """The languages that are not known or only spelt; then the one that needs most pieces."""
        table, beyond = self.shown("languages"), percent_of(self.facts["beyond"])
        first = table.iloc[0]
        most = percent(self._estimate(first, "unknown"), ".1f")
        if len(table) == 1:
            which = "Surely not known to this tokenizer: " if first["not_known"] else ""
            words = plain(self._estimate(first, "fertility"), ".2f")
            unit = _unit(first)
            return f"{which}{most} of the pieces are unknown; {words} pieces per {unit}."
        unknown = table[table["not_known"]]
        if len(unknown):
            named = [
                f"{row['name']} {percent(self._estimate(row, 'unknown'))}"
                for _, row in unknown.iterrows()
            ]
            told = "Surely not known to this tokenizer (share of unknown pieces): "
            told += listed(named, 3)
        else:
            told = (
                f"No language has surely more than {beyond} % unknown pieces; most are in "
                f"{first['name']}, {most}"
            )
        if len(
            spelt := [name_of(code) for code in self.spelt if code not in {*unknown["language"]}]
        ):
            told += f"; spelt letter by letter: {listed(spelt, 3)}"
        return f"{told}. {self._longest(table[~table['not_known']])}".strip()

    def _longest(self, known: pd.DataFrame) -> str:
        """Of the languages that are known, the one that needs the most pieces."""
        parity = "parity" in known and known["parity"].notna().any()
        column = "parity" if parity else "per_byte"
        if not len(known) or (parity and len(known) < 2):
            return ""
        row = known.iloc[int(known[column].fillna(0.0).to_numpy().argmax())]
        many = plain(self._estimate(row, column), ".2f")
        if parity:
            of = name_of(str(self.facts["reference"]))
            return f"{row['name']} takes {many} times as many pieces as {of} for the same texts."
        return f"{row['name']} takes the most pieces per byte, {many}."

    def headline(self) -> str:
        """What a word is, and what misleads where much is unknown."""
        table = self.tables["languages"]
        of = {str(what): rows["name"] for what, rows in table.groupby("words", sort=False)}
        kinds = [
            f"{what} in {listed(names)}" if len(of) > 1 else what for what, names in of.items()
        ]
        told = f"{int(table['texts'].sum())} texts; words are {', '.join(kinds)}"
        if (table["unknown"] > 0).any():
            told += "; one unknown piece may stand for a whole word: pieces are few where it does"
        return told

    def drawings(self) -> Sequence[Drawing]:
        """Languages side by side, and what pieces they share."""
        table = self.shown("languages")
        beyond = 100 * float(self.facts["beyond"])
        of = name_of(str(self.facts["reference"]))
        panels = [
            Dots.of_columns("unknown pieces, %", table, "unknown", level=beyond),
            Dots.of_columns("pieces per word", table, "fertility", scale=1.0, level=1.0),
            Dots.of_columns("words that are one piece, %", table, "whole"),
            Dots.of_columns("pieces that are one letter, %", table, "letters"),
            Dots.of_columns("pieces per byte", table, "per_byte", scale=1.0),
            Dots.of_columns("texts that are cut, %", table, "cut"),
        ]
        if "parity" in table:
            label = f"pieces of the same text, times those in {of}"
            panels.insert(1, Dots.of_columns(label, table, "parity", scale=1.0, level=1.0))
        found = [
            drawings.dots(
                "languages",
                panels,
                table["name"],
                self.about,
                title="What the tokenizer makes of each language",
                caption="A row for each language, the least known first: the share of unknown "
                f"pieces (dashed: {beyond:g} %, beyond which a language is not known), pieces per "
                "word, words that are one known piece, pieces that are one letter (where most are, "
                "a language is spelt), and what a text costs. An unknown piece "
                "may stand for a whole word, so few pieces are good only where few are unknown. "
                "Intervals over texts hold for all languages together.",
            )
        ]
        if "shared" in self.tables:
            shared = self.tables["shared"].pivot(
                index="language", columns="other", values="jaccard"
            )
            order = [code for code in table["language"] if code in shared.index]
            draw = partial(
                named_grid,
                100 * shared.loc[order, order].to_numpy(),
                rows=[name_of(code) for code in order],
                columns=[name_of(code) for code in order],
                title=f"Pieces that two languages share\n{self.about}",
                label="% of the kinds of pieces that either uses",
                note="A language with itself is left out.",
            )
            caption = (
                "One cell for each pair of languages: the kinds of pieces that occur in both, in "
                "per cent of those that occur in either. Darker is more. It depends on how much "
                "text there is, and has no interval."
            )
            found.append(Drawing("shared", draw, caption))
        return found


def percent_of(share: object) -> str:
    """`5` of 0.05."""
    return f"{100 * float(str(share)):g}"


def _unit(row: pd.Series[float]) -> str:
    return "character" if str(row["words"]) == _CHARACTERS else "word"


@dataclass(frozen=True)
class Tokenization(Sampled):
    """Into how many pieces are languages cut, and which does the tokenizer not know?

    Method: all texts are cut into pieces, special tokens not counted; the model is not run. Of
    each language: the share of unknown pieces, pieces per word (fertility; words are annotated
    ones where there are any, else what spaces separate, and characters in Chinese, Japanese and
    Thai), words that are one known piece, pieces that are one letter, pieces per character and
    byte, texts that are longer than the longest input, and how many kinds of pieces occur. Of
    versions of the same items: how many times as many pieces as in the reference language (parity).
    Shares are means over texts with bounds that allow for rare values, others are ratios of totals
    with intervals over texts; bounds of one column hold for all languages together. Without
    languages all texts are one row.

    Source: fertility as in Rust et al. (2021), How Good is Your Tokenizer?, and Ács (2019),
    Exploring BERT's Vocabulary; parity as in Petrov et al. (2023), Language Model Tokenizers
    Introduce Unfairness Between Languages. Limits: a language can be spelt without unknown pieces
    and still be one that the model hardly saw: look at pieces that are one letter, too (not told of
    scripts whose characters are syllables or words). Kinds of pieces
    that are used or shared depend on the amount of text.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))
    result_type: ClassVar[type[Result]] = TokenizationResult
    finds_words: ClassVar[bool] = True

    examples: int = drawn(1000, "texts of each language")
    reference: str = parameter(
        "en", "The language (its code) that others are compared with.", concludes=True
    )
    beyond: float = parameter(
        0.05, "A language with surely more unknown pieces than this share is not known.",
        minimum=0.0, maximum=1.0, concludes=True,
    )  # fmt: skip

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One for each language, by its place: what languages are called is the user's choice."""
        return [f"language-{i:03d}" for i in range(len(_by_language(self.shown(corpus))))]

    def of_block(self, part: str, corpus: Corpus) -> Corpus:
        """The texts of one language."""
        return list(_by_language(self.shown(corpus)).values())[int(part.split("-")[1])]

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Count pieces of every text."""
        import xarray as xr

        texts = self.of_block(part, corpus)
        code = _language(texts, texts[0])
        counts, used, words = counted(encoder, texts)
        context.advance(len(texts))
        pieces, times = np.unique(np.asarray(used, np.int64), return_counts=True)
        items = [str(e.get(Field.ITEM)) if Field.ITEM in texts.fields else "" for e in texts]
        arrays = {name: ("example", counts[:, i]) for i, name in enumerate(_COUNTS)}
        return xr.Dataset(
            {**arrays, "item": ("example", items), "times": ("piece", times)},
            coords={"piece": pieces},
            attrs={"language": code, "words": words, "vocabulary": len(encoder.tokenizer)},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means and ratios by language, and what pairs of languages share."""
        import pandas as pd

        parts = [measured[name] for name in sorted(measured)]
        each = 1 - (1 - self.level) / len(parts)
        shares = {name: _shares(parts, name, self.level) for name in _SHARES}
        rows = [self._row(part, parts, each) for part in parts]
        table = pd.DataFrame(rows)
        for name in reversed(_SHARES):
            for at, (column, values) in enumerate(with_bounds(name, shares[name], p=False).items()):
                table.insert(4 + at, column, np.asarray(values))
        table["not_known"] = table["unknown_low"] > self.beyond
        longest = "parity" if "parity" in table else "fertility"
        table = table.sort_values(longest, ascending=False, kind="stable", ignore_index=True)
        tables = {"languages": table}
        if len(parts) > 1:
            tables["shared"] = _shared(parts)
        evidence = {"largest_unknown_share": _largest(table, "unknown", self.level)}
        reasons = {}
        if "parity" in table:
            others = table[(table["language"] != self.reference) & table["parity_low"].notna()]
            evidence["largest_parity"] = _largest(others, "parity", self.level)
        else:
            reasons["largest_parity"] = _NO_PARITY
        facts = {
            "reference": self.reference,
            "beyond": self.beyond,
            "vocabulary": int(parts[0].attrs["vocabulary"]),
        }
        return self.result(provenance, tables, evidence=evidence, reasons=reasons, facts=facts)

    def _row(
        self, part: xr.Dataset, parts: Sequence[xr.Dataset], level: float
    ) -> dict[str, object]:
        code = str(part.attrs["language"])
        count = {name: part[name].to_numpy() for name in _COUNTS}
        used = part.sizes["piece"]
        row: dict[str, object] = {
            "language": code,
            "name": name_of(code),
            "words": str(part.attrs["words"]),
            "texts": part.sizes["example"],
        }
        for name, bottom in (
            ("fertility", "words"), ("per_character", "characters"), ("per_byte", "bytes"),
        ):  # fmt: skip
            row |= bounded(name, ratio_of_means(count["pieces"], count[bottom], level))
        reference = next((p for p in parts if p.attrs["language"] == self.reference), None)
        if reference is not None and reference["item"].to_numpy()[0] and len(parts) > 1:
            row |= bounded("parity", _parity(part, reference, level))
        return row | {"used": used, "vocabulary": used / int(part.attrs["vocabulary"])}


def counted(encoder: Encoder, texts: Corpus) -> tuple[Floats, list[int], str]:
    """Counts of every text of one language, all known pieces, and what a word is."""
    from bertology.model.batch import texts_of, unknown_id

    tokenizer, limit = encoder.tokenizer, encoder.max_length
    unknown, special = unknown_id(tokenizer), set(tokenizer.all_special_ids)
    known = languages().get(_language(texts, texts[0]))
    words, unspelt = _SPACES, known is not None and known.script in _NO_LETTERS
    if Field.WORDS in texts.fields:
        words = _ANNOTATED
    elif known is not None and known.script in _WITHOUT_SPACES:
        words = _CHARACTERS
    counts, used = np.zeros((len(texts), len(_COUNTS))), list[int]()
    for at, (example, given) in enumerate(zip(texts, texts_of(texts), strict=True)):
        pair = (given,) if isinstance(given, str) else given
        one = tokenizer(*pair, truncation=False, verbose=False).encodings[0]
        spans = _characters(example) if words == _CHARACTERS else known_words(example)
        aligned = align(one, *pair, words=spans)
        own = [i for i, place in enumerate(one.sequence_ids) if place is not None]
        spelt = [aligned.pieces_of(word) for word in range(len(aligned))]
        whole = [len(of) == 1 and one.ids[of[0]] != unknown for of in spelt if of]
        letters = [] if unspelt else [one.offsets[i] for i in own]
        used += [one.ids[i] for i in own if one.ids[i] not in special]
        counts[at] = (
            len(own),
            sum(one.ids[i] == unknown for i in own),
            len(spelt),
            np.mean(whole) if whole and words != _CHARACTERS else np.nan,
            np.mean([end - start == 1 for start, end in letters]) if letters else np.nan,
            limit is not None and len(one.ids) > limit,
            sum(len(text) for text in pair),
            sum(len(text.encode()) for text in pair),
        )
    return counts, used, words


def languages_not_known(
    encoder: Encoder, corpus: Corpus, *, beyond: float = 0.05, level: float = 0.95
) -> list[str]:
    """Codes of the languages of a corpus of which this tokenizer surely knows too little.

    More than `beyond` of their pieces are unknown: what a model does with them says nothing of the
    language, so studies leave them out, or say so. Where a result of `tokenization` is at hand,
    its `not_known` tells the same.
    """
    study = Tokenization(beyond=beyond, level=level)
    parts = [
        study.measure(encoder, corpus, p, Context()) for p in study.parts(encoder.shape, corpus)
    ]
    low = _shares(parts, "unknown", level).simultaneous_low
    return [str(p.attrs["language"]) for p, one in zip(parts, low, strict=True) if one > beyond]


def _language(corpus: Corpus, example: Example) -> str:
    return str(example.get(Field.LANGUAGE)) if Field.LANGUAGE in corpus.fields else _ALL


def _by_language(corpus: Corpus) -> dict[str, Corpus]:
    places: dict[str, list[int]] = {}
    for i, example in enumerate(corpus):
        places.setdefault(_language(corpus, example), []).append(i)
    return {
        code: replace(corpus, examples=[corpus[i] for i in at], origin={}, drawn_from=None)
        for code, at in sorted(places.items())
    }


def _characters(example: Example) -> list[list[Span]]:
    """Every character is a word of its own, but for spaces."""
    return [
        [(i, i + 1) for i, letter in enumerate(text) if not letter.isspace()]
        for text in example.texts
    ]


def _shares(parts: Sequence[xr.Dataset], name: str, level: float) -> PartialMeans:
    """Means over texts of a share, with bounds for all languages that allow for rare values."""
    longest = max(part.sizes["example"] for part in parts)
    rows = np.full((len(parts), longest), np.nan)
    for row, part in zip(rows, parts, strict=True):
        values = part[name].to_numpy().astype(float)
        if name == "unknown":
            pieces = part["pieces"].to_numpy()
            values = np.where(pieces > 0, values / np.maximum(pieces, 1), np.nan)
        row[: len(values)] = values
    ends = (0.0, 1.0)
    return partial_means(rows, within=ends, support=ends, level=level, among=len(parts))


def _parity(part: xr.Dataset, reference: xr.Dataset, level: float) -> Estimate | None:
    """Pieces of the items that both languages have, as a ratio of totals; 1 for the reference."""
    ours, theirs = (
        dict(zip(map(str, p["item"].to_numpy()), p["pieces"].to_numpy(), strict=True))
        for p in (part, reference)
    )
    shared = [item for item in ours if item in theirs]
    return ratio_of_means([ours[i] for i in shared], [theirs[i] for i in shared], level)


def _shared(parts: Sequence[xr.Dataset]) -> pd.DataFrame:
    import pandas as pd

    used = [dict(zip(p["piece"].to_numpy(), p["times"].to_numpy(), strict=True)) for p in parts]
    codes = [str(part.attrs["language"]) for part in parts]
    rows = []
    for one, ours in zip(codes, used, strict=True):
        for other, theirs in zip(codes, used, strict=True):
            if one != other:
                both = ours.keys() & theirs.keys()
                covered = sum(ours[piece] for piece in both) / max(1, sum(ours.values()))
                either = len(ours) + len(theirs) - len(both)
                rows.append((one, other, len(both), len(both) / max(1, either), covered))
    return pd.DataFrame(rows, columns=["language", "other", "both", "jaccard", "covered"])


def _largest(table: pd.DataFrame, column: str, level: float) -> Estimate | None:
    """The largest value of a column whose bounds hold for all rows."""
    if not len(table) or table[column].isna().all():
        return None
    columns = (column, f"{column}_low", f"{column}_high")
    n = int(table["texts"].min())
    return over_rows(table, lambda x: x.max(), columns, n=n, level=level).counting("texts")
