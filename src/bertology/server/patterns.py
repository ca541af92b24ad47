"""Patterns that do not depend on words: attention to the token before, to [SEP], to few tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bertology.data.words.token_pairs import (
    Mask,
    at_offset,
    between_texts,
    punctuation_pieces,
    same_token,
    toward,
)
from bertology.server.rankings import Maps, Ranking
from bertology.server.sentences import Sentence

_MOST_NAMED = 8  # tokens


class Pattern(Protocol):
    """A pattern to look for in maps."""

    @property
    def title(self) -> str:
        """The name in the page's menu."""

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        """How strongly each head shows the pattern in this sentence."""


@dataclass(frozen=True)
class _Targets:
    """A pattern that is a set of pairs (query, key)."""

    title: str
    find: Callable[[Sentence, object], Mask]  # (T, T)
    said: str
    missing: str

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        from bertology.model.reducers.map_scores import attention_to

        targets = self.find(sentence, tokenizer)
        if not targets.any():
            return Ranking(None, self.missing)
        queries, keys = int(targets.any(axis=1).sum()), np.flatnonzero(targets.any(axis=0))
        names = list(dict.fromkeys(sentence.pieces[k] for k in keys))
        shown = ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
        return Ranking(attention_to(maps, targets), self.said.format(n=queries, tokens=shown))


@dataclass(frozen=True)
class _Entropy:
    title: str
    least_first: bool

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        from bertology.model.reducers.map_scores import map_statistics

        order = "lowest" if self.least_first else "highest"
        most = f"{np.log(len(sentence)):.2f}"
        found = f"mean entropy over {len(sentence)} tokens, {order} first; equal weights: {most}"
        return Ranking(map_statistics(maps)["entropy"], found, "nats", self.least_first)


@dataclass(frozen=True)
class _Distance:
    title: str

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: object) -> Ranking:
        from bertology.model.reducers.map_scores import map_statistics

        found = f"mean distance over {len(sentence)} tokens"
        return Ranking(map_statistics(maps)["distance"], found, "tokens")


def _offset(by: int) -> Callable[[Sentence, object], Mask]:
    return lambda sentence, tokenizer: at_offset(len(sentence), by)


def _special(*names: str) -> Callable[[Sentence, object], Mask]:
    """Attention to special tokens, by the names that the tokenizer has for them."""

    def find(sentence: Sentence, tokenizer: object) -> Mask:
        wanted = {getattr(tokenizer, name, None) for name in names} - {None}
        pairs = zip(sentence.pieces, sentence.special, strict=True)
        return toward(np.array([special and piece in wanted for piece, special in pairs]))

    return find


def _punctuation(sentence: Sentence, tokenizer: object) -> Mask:
    if sentence.alignment is None:
        return np.zeros((len(sentence), len(sentence)), dtype=bool)
    return toward(punctuation_pieces(sentence.alignment, sentence.texts, sentence.sides))


def _hidden(sentence: Sentence, tokenizer: object) -> Mask:
    return toward(np.isin(np.arange(len(sentence)), sentence.masked))


PATTERNS: dict[str, Pattern] = {
    "previous": _Targets("the token before", _offset(-1), "{n} tokens, all but the first", ""),
    "next": _Targets("the token after", _offset(1), "{n} tokens, all but the last", ""),
    "self": _Targets("the token itself", _offset(0), "{n} tokens", ""),
    "first": _Targets(
        "the token that opens the text, [CLS]",
        _special("cls_token", "bos_token"),
        "from {n} tokens to {tokens}",
        "No special token opens this model's texts.",
    ),
    "separator": _Targets(
        "the tokens that end texts, [SEP]",
        _special("sep_token", "eos_token"),
        "from {n} tokens to {tokens}",
        "No special token ends this model's texts.",
    ),
    "punctuation": _Targets(
        "punctuation", _punctuation, "from {n} tokens to {tokens}", "There is no punctuation here."
    ),
    "hidden": _Targets(
        "masked words", _hidden, "from {n} tokens to {tokens}", "Nothing is masked here."
    ),
    "again": _Targets(
        "the same token elsewhere",
        lambda sentence, tokenizer: same_token(sentence.pieces, sentence.special),
        "{n} tokens that occur again: {tokens}",
        "No token occurs twice here.",
    ),
    "across": _Targets(
        "the other text of a pair",
        lambda sentence, tokenizer: between_texts(sentence.sides),
        "from {n} tokens to the other text",
        "There is no second text.",
    ),
    "focused": _Entropy("few tokens at once", True),
    "broad": _Entropy("many tokens at once", False),
    "far": _Distance("tokens far away"),
}
