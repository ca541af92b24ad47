"""Small BERTs of a language and its twin: the same text in a second vocabulary ("fake" text).

K et al. (2020) and Dufter and Schütze (2020) make a second language of the first by giving every
piece another number. So nothing but what a setting shares tells the model that the two are alike,
and what a word's translation is, is known. Rows are made of the plain text and changed afterwards;
masks, losses, network and optimizer are those of all pre-training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Bools, Floats, Ints
from bertology.errors import DataError
from bertology.train.fresh import Architecture, seeded
from bertology.train.optimizers import learning_rate_factor
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Masking, Objective, Pretraining, Stage
from bertology.train.pretrain.loop import bert_of
from bertology.train.pretrain.losses import LossInput
from bertology.train.pretrain.masking import MaskableVocabulary, hide
from bertology.train.pretrain.network import Network
from bertology.train.pretrain.pairings import find_pairing
from bertology.train.pretrain.passes import Passes, Updates
from bertology.train.pretrain.processes import joined
from bertology.train.pretrain.rows import RowPlan, Rows, ShardText, fill
from bertology.train.pretrain.shards import HELD_OUT, Shard, Shards
from bertology.train.pretrain.weights import Weights
from bertology.train.protocols import PretrainingBert

_JUDGED_ROWS = 512  # of held-out text, in each language
_STATES_AT_ONCE = 256  # sentences


@dataclass(frozen=True)
class Setting:
    """What the two languages share, and what their model is trained on."""

    sentence: bool = True  # the loss of next sentences, beside that of masked tokens
    shared_positions: bool = True
    shared_special: bool = True  # [CLS], [SEP], [MASK], …
    shared_pieces: Bools | None = None  # (V,): pieces that have one number in both languages
    inverted: bool = False  # the order of pieces in each sentence of the second language
    parallel: bool = True  # the second language has the first one's documents, or others
    translation: bool = False  # half of all rows are a stretch of text beside its twin

    @property
    def objective(self) -> Objective:
        """Rows are the same with and without the loss of next sentences."""
        return Objective("nsp", Masking(), ("mlm", "sentence") if self.sentence else ("mlm",))


class TwoLanguages:
    """A text in both languages, on a device. Language 0 is the text, language 1 its twin.

    Each has half of the documents, so that settings with the same and with other documents in the
    second language see as much text.
    """

    def __init__(
        self, shards: Shards, setting: Setting, *, length: int, device: torch.device | str
    ) -> None:
        self.setting, self.length, self.device = setting, length, torch.device(device)
        self.special = shards.special
        self.size = shards.vocab_size
        self.pad_token_id = shards.special["pad"]
        own = np.arange(self.size) + self.size
        if setting.shared_special:
            marks = list(shards.special.values())
            own[marks] = marks
        if setting.shared_pieces is not None:
            own[setting.shared_pieces] = np.flatnonzero(setting.shared_pieces)
        self.twin = torch.from_numpy(own).to(self.device)
        one, other = _halves(shards.open(shards.names[0]))
        held_out = shards.open(HELD_OUT)
        self.trained = (one, one if setting.parallel else other)
        self.held_out = (held_out, held_out)
        self._shards = shards

    def __len__(self) -> int:
        """Pieces of both languages."""
        return 2 * self.size

    @property
    def pieces(self) -> MaskableVocabulary:
        """What may replace a masked piece: those of both languages, as in the papers."""
        marks = set(self.special.values())
        first = torch.tensor([i for i in range(self.size) if i not in marks], device=self.device)
        ordinary = torch.unique(torch.cat([first, self.twin[first]]))
        unknown = torch.zeros(
            len(self), device=self.device
        )  # frequencies, which nothing here needs
        return MaskableVocabulary(ordinary, self.special["mask"], self.special["unk"], unknown)

    def text(self, language: int, shard: Shard) -> ShardText:
        """The text of a language, still in the first one's numbers."""
        found = ShardText.of(shard, self._shards, self.device)
        if language == 0 or not self.setting.inverted:
            return found
        return replace(found, tokens=found.tokens[_inverted(shard).to(self.device)])

    def spoken(self, rows: Rows, second: Tensor) -> Rows:
        """Rows in which some tokens (a mask) are of the second language."""
        _, columns = rows.at
        positions = columns.expand_as(rows.ids) if rows.positions is None else rows.positions
        if not self.setting.shared_positions:
            positions = torch.where(second, positions + self.length, positions)
        return replace(
            rows, ids=torch.where(second, self.twin[rows.ids], rows.ids), positions=positions
        )

    def view(
        self, rows: Rows, second: Tensor, pieces: MaskableVocabulary, chance: Chance
    ) -> LossInput:
        """Masked rows. Each language may have a [MASK] of its own."""
        hidden = hide(rows, self.setting.objective.masking, pieces, chance)
        masked = (hidden.ids == pieces.mask) & second
        hidden = replace(hidden, ids=torch.where(masked, self.twin[pieces.mask], hidden.ids))
        return LossInput.masked(rows, hidden, pieces)

    def sentences(self, ids: Sequence[Ints], language: int) -> tuple[Tensor, Tensor, Tensor]:
        """Sentences without marks as (B, T) ids, positions, and what is no padding.

        They begin with [CLS] and end with [SEP]. Inverted sentences stay so: turn their states
        around to have them in the order of the first language.
        """
        longest = max(len(s) for s in ids) + 2
        table = np.full((len(ids), longest), self.pad_token_id)
        for row, sentence in zip(table, ids, strict=True):
            order = sentence[::-1] if language and self.setting.inverted else sentence
            row[: len(sentence) + 2] = [self.special["cls"], *order, self.special["sep"]]
        found = torch.from_numpy(table).to(self.device)
        real = found != self.pad_token_id
        positions = torch.arange(longest, device=self.device).expand_as(found)
        if language:
            found = self.twin[found]
            if not self.setting.shared_positions:
                positions = positions + self.length
        return found, positions, real


def train_two_languages(
    languages: TwoLanguages,
    recipe: Pretraining,
    *,
    reach: Callable[[int], None] = lambda step: None,
) -> PretrainingBert:
    """A model of both languages, in evaluation mode; half of all rows are of each."""
    device = languages.device
    chance = Chance(recipe.seed)
    with joined(str(device)) as processes, seeded(recipe.seed, device):
        model = bert_of(recipe.model, languages, seed=recipe.seed)
        network = Network(model, recipe.stages, recipe.model)
        network.to(device).train()
        record = device.type == "cuda"
        weights = Weights(network, torch.bfloat16 if record else torch.float32)
        passes = Passes(network, weights, record=record)
        updates = Updates(recipe, weights, processes, record=record)
        pieces, batches = languages.pieces, _batches(languages, recipe)
        rise = round(recipe.warmup * recipe.steps)
        for step in range(recipe.steps):
            weights.clear()
            passes(languages.view(*next(batches), pieces, chance("rows", step)), 0, 1.0)
            factor = learning_rate_factor(
                step, rise=rise, total=recipe.steps, schedule=recipe.schedule
            )
            updates(recipe.learning_rate * factor)
            reach(step + 1)
        learnt = weights.as_dict()
    model = bert_of(recipe.model, languages, seed=recipe.seed)
    own = {n.removeprefix("model."): w for n, w in learnt.items() if n.startswith("model.")}
    model.load_state_dict(own, strict=False)  # tied weights have one name only
    model.tie_weights()
    return model.to(device).eval()


class Told(NamedTuple):
    """How well one thing is predicted."""

    loss: float
    accuracy: float


class Judged(NamedTuple):
    """How well a model predicts held-out text."""

    masked: tuple[Told, Told]  # tokens, in each language
    sentence: float  # accuracy on next sentences over both languages; NaN without that loss


def judge_held_out(model: PretrainingBert, languages: TwoLanguages, *, seed: int = 0) -> Judged:
    """Masked tokens in held-out rows of each language, and next sentences."""
    size = Architecture(hidden=model.config.hidden_size, heads=1)
    stages = (Stage(replace(languages.setting.objective, losses=("mlm", "sentence"))),)
    network = Network(model, stages, size).eval()
    pieces = languages.pieces
    masked, sentences = [], []
    for language, shard in enumerate(languages.held_out):
        plan = _pairs(shard, languages.length, np.random.default_rng(seed))
        chosen = np.arange(min(len(plan), _JUDGED_ROWS))
        rows = fill(languages.text(language, shard), plan.take(chosen), chosen, languages.length)
        second = torch.full_like(rows.fixed, bool(language))
        with torch.no_grad():
            view = languages.view(
                languages.spoken(rows, second), second, pieces, Chance(seed)("held-out")
            )
            outcomes = network.judge(view, 0)
        loss, right, count = outcomes["mlm"].loss, outcomes["mlm"].correct, outcomes["mlm"].count
        masked.append(Told(float(loss), float(right / count)))
        sentences.append(float(outcomes["sentence"].correct / outcomes["sentence"].count))
    told = float(np.mean(sentences)) if languages.setting.sentence else math.nan
    return Judged((masked[0], masked[1]), told)


def held_out_sentences(shards: Shards, most: int) -> list[Ints]:
    """The different held-out sentences of at most so many pieces, without marks."""
    shard = shards.open(HELD_OUT)
    marks = list(shards.special.values())
    found: dict[tuple[int, ...], Ints] = {}
    for start, end in pairwise(shard.sentences):
        sentence = np.asarray(shard.tokens[start:end], dtype=np.int64)
        sentence = sentence[~np.isin(sentence, marks)]
        if 0 < len(sentence) <= most:
            found.setdefault(tuple(sentence.tolist()), sentence)
    return list(found.values())


def states_of(
    model: PretrainingBert, languages: TwoLanguages, sentences: Sequence[Ints], language: int
) -> list[Floats]:
    """(layers + 1, T, hidden) of each sentence, in the first language's order, without marks.

    The first layer is what enters the model. Sentences are given in the first one's pieces.
    """
    body: Any = model.bert  # its protocol knows no states of all layers
    found: list[Floats] = []
    for start in range(0, len(sentences), _STATES_AT_ONCE):
        chosen = sentences[start : start + _STATES_AT_ONCE]
        ids, positions, real = languages.sentences(chosen, language)
        with torch.no_grad():
            states = body(
                input_ids=ids,
                position_ids=positions,
                attention_mask=real.long(),
                output_hidden_states=True,
            ).hidden_states
        layers = torch.stack(states, 1).float().cpu().numpy()  # (B, L, T, hidden)
        for one, sentence in zip(layers, chosen, strict=True):
            own = one[:, 1 : len(sentence) + 1]
            found.append(own[:, ::-1] if language and languages.setting.inverted else own)
    return found


# Rows ------------------------------------------------------------------------------------------


def _batches(languages: TwoLanguages, recipe: Pretraining) -> Iterator[tuple[Rows, Tensor]]:
    """Endless batches, and which of their tokens are of the second language."""
    rows = recipe.batch_tokens // languages.length
    single = rows // 2 if languages.setting.translation else rows
    feeds = [
        _feed(languages, language, single // 2, seed=(recipe.seed, language)) for language in (0, 1)
    ]
    if languages.setting.translation:
        feeds.append(
            _feed(languages, 0, rows - 2 * (single // 2), seed=(recipe.seed, 2), twins=True)
        )
    while True:
        parts = [next(feed) for feed in feeds]
        joint = _joined([part for part, _ in parts])
        yield joint, torch.cat([second for _, second in parts])


def _feed(
    languages: TwoLanguages,
    language: int,
    count: int,
    *,
    seed: tuple[int, ...],
    twins: bool = False,
) -> Iterator[tuple[Rows, Tensor]]:
    """Endless groups of rows of one language; or of twins, where both are in each row."""
    draw = np.random.default_rng(seed)
    shard, length = languages.trained[language], languages.length
    text = languages.text(language, shard)
    index = np.arange(count)
    nothing = np.zeros(0, np.int64)
    plan, order = RowPlan(nothing, nothing, nothing, nothing), nothing
    while True:
        while len(order) < count:
            plan = _twins(shard, length, draw) if twins else _pairs(shard, length, draw)
            order = draw.permutation(len(plan))
            if len(order) < count:
                raise DataError(
                    f"The text gives no {count} rows of {length} tokens ({len(order)} in a pass).",
                    hint="Give more text, or smaller updates.",
                )
        chosen, order = order[:count], order[count:]
        rows = fill(text, plan.take(chosen), index, length)
        second = torch.full_like(rows.fixed, bool(language))
        if twins:
            second = rows.segments.bool()
            # No [CLS] stands before the second part; so each piece is where its twin is.
            rows = replace(rows, positions=_some(rows.positions) + rows.segments)
        yield languages.spoken(rows, second), second


def _some(positions: Tensor | None) -> Tensor:
    assert positions is not None  # rows of twins have them
    return positions


def _pairs(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    return find_pairing("nsp").plan(shard, length, draw)


def _twins(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    """Every row is a stretch of text beside itself; positions begin anew in the second part."""
    half = (length - 3) // 2
    plan = find_pairing("full-sentences").plan(shard, half + 3, draw)  # stretches of half + 1
    whole = np.full_like(plan.first, half)
    return RowPlan(plan.first, whole, plan.first, whole + (length - 3) % 2, restart=True)


def _joined(parts: Sequence[Rows]) -> Rows:
    """One batch of several groups of rows; each row has a number of its own."""
    joint = {
        f.name: torch.cat([getattr(p, f.name) for p in parts])
        for f in fields(Rows)
        if all(getattr(p, f.name) is not None for p in parts)
    }
    joint["index"] = torch.arange(len(joint["ids"]), device=joint["ids"].device)
    return Rows(**joint)


def _halves(shard: Shard) -> tuple[Shard, Shard]:
    """The first half of the documents, and the others."""
    middle = (len(shard.documents) - 1) // 2
    sentence = int(shard.documents[middle])
    token = int(shard.sentences[sentence])
    first = Shard(
        shard.tokens[:token], shard.sentences[: sentence + 1], shard.documents[: middle + 1]
    )
    other = Shard(
        shard.tokens[token:],
        shard.sentences[sentence:] - token,
        shard.documents[middle:] - sentence,
    )
    return first, other


def _inverted(shard: Shard) -> Tensor:
    """(N,): which token stands at each place once every sentence is turned around.

    The [SEP] that ends a document stays at its end.
    """
    last = np.zeros(len(shard.sentences), np.int64)
    last[shard.documents[1:]] = 1
    starts, ends = shard.sentences[:-1], shard.sentences[1:] - last[1:]
    places: NDArray[np.int64] = np.arange(len(shard.tokens))
    sentence = np.searchsorted(shard.sentences, places, "right") - 1
    turned = starts[sentence] + ends[sentence] - 1 - places
    return torch.from_numpy(np.where(places < ends[sentence], turned, places))
