"""What a head may do whatever the words mean: look back, at [SEP], at few tokens or at many."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.server.sentences import Sentence

__all__ = ["PATTERNS", "Ranking", "ranked", "targets_score"]

Maps = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
WEIGHT = "mean weight"


@dataclass(frozen=True)
class Ranking:
    """A score of every head (layers, heads), or none, and what was looked for."""

    scores: Maps | None
    found: str
    unit: str = WEIGHT
    least_first: bool = False

    def as_json(self) -> dict[str, Any]:
        """All heads, the best first; heads that were pruned are left out."""
        return {
            "heads": [] if self.scores is None else ranked(self.scores, self.least_first),
            "found": self.found,
            "unit": self.unit,
        }


def ranked(scores: Maps, least_first: bool = False) -> list[dict[str, Any]]:
    """Heads in the order of their scores."""
    order = np.argsort(scores if least_first else -scores, axis=None, kind="stable")
    places = (np.unravel_index(int(i), scores.shape) for i in order)
    return [
        {"layer": int(layer), "head": int(head), "score": float(scores[layer, head])}
        for layer, head in places
        if np.isfinite(scores[layer, head])
    ]


def targets_score(maps: Maps, targets: Mask) -> Maps:
    """The mean, over tokens that have a target, of the weight that they give to their targets."""
    asking = targets.any(axis=1)
    weights = (maps * targets).sum(axis=-1)[..., asking]  # (layers, heads, asking)
    found: Maps = weights.mean(axis=-1)
    return found


@dataclass(frozen=True)
class _Targets:
    """A pattern that is a set of (query, key) pairs."""

    title: str
    find: Callable[[Sentence, Any], Mask]  # (T, T)
    said: str
    missing: str

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: Any) -> Ranking:
        targets = self.find(sentence, tokenizer)
        if not targets.any():
            return Ranking(None, self.missing)
        asking, keys = int(targets.any(axis=1).sum()), np.flatnonzero(targets.any(axis=0))
        names = list(dict.fromkeys(sentence.pieces[k] for k in keys))
        shown = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
        found = self.said.format(n=asking, tokens=shown)
        return Ranking(targets_score(maps, targets), found)


@dataclass(frozen=True)
class _Entropy:
    title: str
    least_first: bool

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: Any) -> Ranking:
        logs = np.log(maps, out=np.zeros_like(maps), where=maps > 0)
        entropy = -(maps * logs).sum(axis=-1).mean(axis=-1)
        order = "lowest" if self.least_first else "highest"
        most = f"{np.log(len(sentence)):.2f}"
        found = f"mean entropy over {len(sentence)} tokens, {order} first; equal weights: {most}"
        return Ranking(entropy, found, "nats", self.least_first)


@dataclass(frozen=True)
class _Distance:
    title: str

    def __call__(self, sentence: Sentence, maps: Maps, tokenizer: Any) -> Ranking:
        at = np.arange(len(sentence))
        far = np.abs(at[:, None] - at)
        score = (maps * far).sum(axis=-1).mean(axis=-1)
        return Ranking(score, f"mean distance over {len(sentence)} tokens", "tokens")


def _offset(by: int) -> Callable[[Sentence, Any], Mask]:
    return lambda sentence, tokenizer: np.eye(len(sentence), k=by, dtype=bool)


def _to(keys: Callable[[Sentence, Any], list[int]]) -> Callable[[Sentence, Any], Mask]:
    """From every token but the target itself."""

    def find(sentence: Sentence, tokenizer: Any) -> Mask:
        mask = np.zeros((len(sentence), len(sentence)), dtype=bool)
        mask[:, keys(sentence, tokenizer)] = True
        np.fill_diagonal(mask, False)
        return mask

    return find


def _special(*names: str) -> Callable[[Sentence, Any], list[int]]:
    def keys(sentence: Sentence, tokenizer: Any) -> list[int]:
        wanted = {getattr(tokenizer, name, None) for name in names} - {None}
        pairs = enumerate(zip(sentence.pieces, sentence.special, strict=True))
        return [i for i, (piece, special) in pairs if special and piece in wanted]

    return keys


def _signs(sentence: Sentence, tokenizer: Any) -> list[int]:
    if sentence.alignment is None:
        return []
    found = []
    rows = zip(sentence.alignment.piece_spans, sentence.sides, strict=True)
    for piece, (span, side) in enumerate(rows):
        text = "" if span is None or side is None else sentence.texts[side][slice(*span)]
        if text and all(unicodedata.category(c)[0] == "P" for c in text):
            found.append(piece)
    return found


def _again(sentence: Sentence, tokenizer: Any) -> Mask:
    pieces = np.array(sentence.pieces)
    words = ~np.array(sentence.special)
    same: Mask = (pieces[:, None] == pieces) & words[:, None] & words
    np.fill_diagonal(same, False)
    return same


def _across(sentence: Sentence, tokenizer: Any) -> Mask:
    sides = np.array([-1 if side is None else side for side in sentence.sides])
    found: Mask = (sides[:, None] + sides == 1) & (sides[:, None] >= 0) & (sides >= 0)
    return found


PATTERNS: dict[str, Any] = {
    "previous": _Targets("the token before", _offset(-1), "{n} tokens that have one before", ""),
    "next": _Targets("the token after", _offset(1), "{n} tokens that have one after", ""),
    "self": _Targets("the token itself", _offset(0), "{n} tokens", ""),
    "first": _Targets(
        "the token that opens the text, [CLS]",
        _to(_special("cls_token", "bos_token")),
        "from {n} tokens to {tokens}",
        "No special token opens this model's texts.",
    ),
    "separator": _Targets(
        "the tokens that end texts, [SEP]",
        _to(_special("sep_token", "eos_token")),
        "from {n} tokens to {tokens}",
        "No special token ends this model's texts.",
    ),
    "punctuation": _Targets(
        "punctuation", _to(_signs), "from {n} tokens to {tokens}", "There is no punctuation here."
    ),
    "hidden": _Targets(
        "hidden words",
        _to(lambda sentence, tokenizer: list(sentence.masked)),
        "from {n} tokens to {tokens}",
        "Nothing is hidden here.",
    ),
    "again": _Targets(
        "the same token elsewhere",
        _again,
        "{n} tokens that occur again: {tokens}",
        "No token occurs twice here.",
    ),
    "across": _Targets(
        "the other text of a pair",
        _across,
        "from {n} tokens to the other text",
        "There is no second text.",
    ),
    "focused": _Entropy("few tokens at once", True),
    "broad": _Entropy("many tokens at once", False),
    "far": _Distance("tokens far away"),
}
