"""Nulls of real passes: random models, permuted links, weight noise, shuffled layers.

Texts are those of the bundled grammar. Random models have 4 layers × 4 heads × 32 dimensions and
the tokenizer of `bertology-mini`.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import test_relation_heads as relations
import torch
import transformers as hf
import xarray as xr
from noise_control import with_noise

import bertology as bt
import planted as task
import planted_links as planted
from bertology.data.corpus import Corpus, Field
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.attention.attention_change import AttentionChange
from bertology.studies.attention.cls_attention import ClsAttention
from bertology.studies.attention.map_types import MapTypes
from bertology.studies.attention.relation_heads import RelationHeads
from bertology.studies.attention.separator_noop import SeparatorNoop
from bertology.studies.attention.syntax_heads import SyntaxHeads
from bertology.studies.attention.token_classes import TokenClasses
from bertology.studies.joins.link_candidates import LinkCandidates
from bertology.studies.joins.task_comparison import TaskComparison
from bertology.studies.study import Context, Study
from bertology.studies.training.fine_tuning_starts import FineTuningStarts
from nulls import BORDER, FAILS, HOLDS, Null, at_the_truth, judged

TEXTS, LINKED, POPULATION = 80, 300, 1500
SPREADS = (0.1, 0.3, 0.6)  # of random weights: attention from nearly even to sharp
_SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
_WIDE = {"hidden_size": 192, "intermediate_size": 768}
_BEST_EFFORT = {"resamples": 200}
_LINKS = ("verb-subject", "noun-pronoun")


@cache
def mini(head: str = "base") -> Encoder:
    return Encoder.load("bertology-mini", head=head, device="cpu")


@cache
def grammar() -> Corpus:
    return bt.load_corpus("grammar", limit=4000, seed=0)


def texts(seed: int, size: int = TEXTS) -> Corpus:
    return grammar().take(size, seed=seed)


def random_model(seed: int, *, wide: bool = False) -> hf.BertModel:
    torch.manual_seed(seed)
    config = hf.BertConfig(
        **{**_SMALL, **(_WIDE if wide else {})},
        vocab_size=len(mini().tokenizer),
        initializer_range=SPREADS[seed % len(SPREADS)],
    )
    return hf.BertModel(config, add_pooling_layer=False).eval()


def encoder(model: hf.BertModel, name: str = "random") -> Encoder:
    return Encoder(model, mini().tokenizer, name=name)


# ---------------------------------------------------------------- random models


def random_classes(seed: int) -> Mapping[str, str]:
    study = TokenClasses(**_BEST_EFFORT)
    return judged("token-classes", planted.ask(study, encoder(random_model(seed)), texts(seed)))


def random_separators(seed: int) -> Mapping[str, str]:
    torch.manual_seed(seed)
    config = hf.BertConfig(**{**_SMALL, "num_hidden_layers": 6}, vocab_size=len(mini().tokenizer))
    config.initializer_range = SPREADS[seed % len(SPREADS)]
    model = Encoder(hf.BertForMaskedLM(config).eval(), mini().tokenizer, name="random", head="mlm")
    study = SeparatorNoop(examples=60, **_BEST_EFFORT)
    return judged("separator-noop", planted.ask(study, model, texts(seed)))


def random_links(seed: int) -> Mapping[str, str]:
    reader = encoder(random_model(seed))
    found = planted.ask(SyntaxHeads(relations=_LINKS, **_BEST_EFFORT), reader, texts(seed))
    from_cls = planted.ask(ClsAttention(**_BEST_EFFORT), reader, texts(seed))
    return judged("syntax-heads", found) | judged("cls-attention", from_cls)


def random_relations(seed: int) -> Mapping[str, str]:
    study = RelationHeads(max_tokens=20, every=False, seed=seed)
    found = planted.ask(study, encoder(random_model(seed)), texts(seed, LINKED))
    return judged("relation-heads", found)


# ---------------------------------------------------------------- permuted links


def permuted(corpus: Corpus, seed: int) -> Corpus:
    """The same sentences, two words of each linked at random."""
    rng, found = random.Random(seed), []
    for one in corpus:
        words = range(len(one.get("words")))
        pairs = [(a, b) for a in words for b in words if abs(a - b) > 1]
        if pairs:
            known = {**one.annotations, "links": [list(rng.choice(pairs))]}
            found.append(replace(one, annotations=known))
    return replace(corpus, examples=found, fields=corpus.fields | {Field.LINKS})


def permuted_relations(seed: int) -> Mapping[str, str]:
    study = RelationHeads(relation="links", max_tokens=20, seed=seed)
    found = planted.ask(study, mini(), permuted(texts(seed, LINKED // 2), seed))
    named = {n.replace("links_", "frame_", 1): e for n, e in found.evidence().items()}
    return judged("relation-heads", found, evidence=named)


def permuted_links(seed: int) -> Mapping[str, str]:
    study = SyntaxHeads(relations=("links",), **_BEST_EFFORT)
    found, named = planted.ask(study, mini(), permuted(texts(seed), seed)), {}
    for name, estimate in found.evidence().items():
        if name.startswith("links_"):
            for relation in ("verb_subject", "noun_pronoun"):
                named[name.replace("links", relation, 1)] = estimate
    return judged("syntax-heads", found, evidence=named)


def one_of_eight(seed: int) -> Mapping[str, str]:
    """One head of eight follows links, which is more than a tenth, however weakly."""
    reader = relations.planted_encoder()
    layer, head = relations.KNOWING
    rows = slice(relations.SIZE * head, relations.SIZE * (head + 1))
    with torch.no_grad():
        keys = reader.model.encoder.layer[layer].attention.self.key.weight
        keys[rows] *= random.Random(seed).uniform(0.1, 1)
    study = RelationHeads(relation="obj", seed=seed)
    found = planted.ask(study, reader, relations.planted_corpus(800).take(100, seed=seed))
    named = {n.replace("obj_", "frame_", 1): e for n, e in found.evidence().items()}
    return judged("relation-heads", found, evidence=named)


# ---------------------------------------------------------------- weight noise


def pair_with_noise(seed: int) -> tuple[Encoder, Encoder]:
    """A random model, and the same with noise of 2 to 20 % of each matrix."""
    model = random_model(seed)
    noisy = with_noise(model, (0.02, 0.05, 0.1, 0.2)[seed % 4], seed)
    return encoder(model, "before"), encoder(noisy, "after")


def noisy_layers(seed: int) -> Mapping[str, str]:
    before, after = pair_with_noise(seed)
    study = AttentionChange(before="before", seed=seed, **_BEST_EFFORT)
    return judged("attention-change", planted.ask(study, after, texts(seed), before=before))


def noisy_classes(seed: int) -> Mapping[str, str]:
    before, after = pair_with_noise(seed)
    study = TokenClasses(other="before", seed=seed, **_BEST_EFFORT)
    return judged("token-classes", planted.ask(study, after, texts(seed), other=before))


# ---------------------------------------------------------------- permuted labels


def permuted_labels(seed: int) -> Mapping[str, str]:
    """Models are really trained, on labels that no text tells: all starts answer by chance.

    The encoder that they start from knows another task.
    """
    study = FineTuningStarts(
        starts=("pretrained", "random", "frozen"), epochs=2, batch_size=16, learning_rate=1e-3
    )
    with TemporaryDirectory() as folder:
        rng = random.Random(seed)
        for split, size in (("train", 96), ("validation", 200)):
            examples = task.corpus(size, seed=rng.randrange(10**6)).examples
            rows = [(e.text, rng.choice(task.TASK.labels)) for e in examples]
            with (Path(folder) / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("text", "label"), *rows])
        knowing = Encoder(task.model(), task.tokenizer(), head="classification", name="planted")
        found = planted.ask(study, knowing, bt.load_corpus(folder))
    return judged("fine-tuning-starts", found)


# ---------------------------------------------------------------- what was measured once


class Stored:
    """What a study measured of `bertology-mini` on many texts, to draw from and conclude on."""

    def __init__(
        self, study: Study, corpus: Corpus, *, pair: bool = False, head: str = "base"
    ) -> None:
        self.study, self.name = study, corpus.name
        part = f"examples-000000-{len(corpus):06d}"
        self.part: xr.Dataset = study.measure(mini(head), corpus, part, Context())
        name = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(study).__name__)
        self.about = Provenance(
            study=name.strip("-"),
            study_version=study.version,
            parameters=study.parameters,
            model={"name": "bertology-mini", "fingerprint": "0"},
            corpus={"name": corpus.name, "fingerprint": corpus.name, "pair": pair},
        )
        evidence = self.concluded(self.part).evidence()
        self.truth = {name: found.value for name, found in evidence.items()}

    def concluded(self, part: xr.Dataset) -> Result:
        return self.study.conclude({"examples-000000-999999": part}, self.about)

    def drawn(self, seed: int, size: int = TEXTS) -> Result:
        chosen = np.random.default_rng(seed).choice(self.size, size, replace=False)
        return self.concluded(self.of(np.sort(chosen)))

    @property
    def size(self) -> int:
        return int(self.part.sizes["example"])

    def of(self, chosen: np.ndarray) -> xr.Dataset:
        return self.part.isel(example=chosen)


class StoredLinks(Stored):
    """The same of words and the links between them, of which texts have more or fewer."""

    @property
    def size(self) -> int:
        return int(self.part.attrs["examples"])

    def of(self, chosen: np.ndarray) -> xr.Dataset:
        part = self.part
        rows = np.flatnonzero(np.isin(part["example"], chosen))
        ends = part["links"].to_numpy()
        links = np.flatnonzero(np.isin(ends[:, 1], rows))
        moved = ends[links].copy()
        moved[:, 1:] = np.searchsorted(rows, moved[:, 1:])
        return part.isel(row=rows, link=links).assign(links=(("link", "end"), moved))


@cache
def classes_of_mini(*, pair: bool = False) -> Stored:
    corpus = texts(0, POPULATION)
    if pair:
        two = zip(corpus.examples[::2], corpus.examples[1::2], strict=False)
        both = [replace(a, text_b=b.text, annotations={}) for a, b in two]
        corpus = Corpus("pairs", both, frozenset({Field.TEXT, Field.TEXT_B}))
    return Stored(TokenClasses(examples=POPULATION, **_BEST_EFFORT), corpus, pair=pair)


@cache
def links_of_mini() -> Stored:
    study = SyntaxHeads(relations=_LINKS, examples=POPULATION, **_BEST_EFFORT)
    return StoredLinks(study, texts(0, POPULATION))


@cache
def cls_of_mini() -> Stored:
    return Stored(ClsAttention(examples=POPULATION, **_BEST_EFFORT), texts(0, POPULATION))


@cache
def types_of_mini() -> Stored:
    return Stored(MapTypes(examples=POPULATION, measures=False), texts(0, 400))


def shuffled_layers(seed: int) -> Mapping[str, str]:
    """No half of the layers is another than the other half."""
    stored = classes_of_mini()
    order = np.random.default_rng(seed).permutation(stored.part.sizes["layer"])
    some = stored.part.isel(example=slice(0, TEXTS), layer=order)
    return judged("token-classes", stored.concluded(some))


def classes_at_the_truth(seed: int) -> Mapping[str, str]:
    stored = classes_of_mini()
    return at_the_truth("token-classes", stored.drawn(seed).evidence(), stored.truth)


def links_at_the_truth(seed: int) -> Mapping[str, str]:
    links, from_cls = links_of_mini(), cls_of_mini()
    return at_the_truth("syntax-heads", links.drawn(seed).evidence(), links.truth) | at_the_truth(
        "cls-attention", from_cls.drawn(seed).evidence(), from_cls.truth
    )


def separators_at_the_truth(seed: int) -> Mapping[str, str]:
    """One corpus of single texts and one of pairs, both drawn anew."""
    stored = [classes_of_mini(), classes_of_mini(pair=True)]
    found = TaskComparison(resamples=1000).join([s.drawn(seed) for s in stored])
    truth = {}
    for ending in ("", "_beyond_even"):
        one, two = (s.truth[f"sep_weight{ending}"] for s in stored)
        truth[f"single_text_sep_lead{ending}"] = one - two
    return at_the_truth("task-comparison", found.evidence(), truth)


def shuffled_types(seed: int) -> Mapping[str, str]:
    """Candidates of `bertology-mini` have the maps of heads drawn at random."""
    links, types = links_of_mini().drawn(seed, 400), types_of_mini()
    shape = types.part["type"].shape
    order = np.random.default_rng(seed).permutation(shape[1] * shape[2])
    flat = types.part["type"].to_numpy().reshape(shape[0], -1)[:, order]
    shuffled = types.part.assign(type=(types.part["type"].dims, flat.reshape(shape)))
    found = LinkCandidates().join([links, types.concluded(shuffled)])
    return judged("link-candidates", found)


_FRAMES = (
    "a-head-attends-along-frames",
    "few-heads-attend-along-frames",
    "a-head-encodes-a-semantic-relation",
)
_TRENDS = ("early-layers-attend-to-cls", "late-layers-attend-to-sep")
_STRIPES = ("stripes-are-special-tokens", "linguistic-features-get-little-attention")
_DIAGONAL = (
    "verb-subject-heads-no-better-than-an-offset",
    "noun-pronoun-heads-no-better-than-an-offset",
)
_FROM_CLS = (
    "cls-attends-to-sep-in-the-last-layer",
    "cls-attends-to-punctuation-in-the-last-layer",
)
_LAST = ("last-two-layers-change-most", "last-two-layers-change-most-strictly")
_RAISED = tuple(f"fine-tuning-raises-attention-to-{n}" for n in ("nouns", "objects", "negation"))
_STARTS = ("fine-tuning-pays", "pre-training-pays", "random-start-below-no-training")
_SEP = ("sep-weighs-more-in-single-texts", "sep-weighs-more-in-single-texts-beyond-length")
_CANDIDATES = tuple(f"{n}-candidates-are-diagonal" for n in ("verb-subject", "noun-pronoun"))

_NO_OP = (
    "sep-from-a-third-of-the-depth",
    "sep-importance-drops",
    "sep-is-a-no-op",
    "sep-can-be-dropped",
    "sep-carries-less-than-its-weight",
)
NULLS = (
    Null("random model", random_classes, dict.fromkeys((*_TRENDS, *_STRIPES), HOLDS)),
    Null(
        "random model (links)",
        random_links,
        {**dict.fromkeys(_DIAGONAL, FAILS), **dict.fromkeys(_FROM_CLS, HOLDS)},
    ),
    Null(
        "random model (frames)",
        random_relations,
        dict.fromkeys((*_FRAMES, "heads-with-most-weight-follow-frames"), HOLDS),
    ),
    Null(
        "permuted links (frames)",
        permuted_relations,
        dict.fromkeys((*_FRAMES, "heads-with-most-weight-follow-frames"), HOLDS),
    ),
    Null("random model ([SEP] cut)", random_separators, dict.fromkeys(_NO_OP, HOLDS)),
    Null("permuted links", permuted_links, dict.fromkeys(_DIAGONAL, FAILS)),
    Null("1 of 8 heads follows", one_of_eight, {"few-heads-attend-along-frames": HOLDS}),
    Null("weight noise (layers)", noisy_layers, dict.fromkeys(_LAST, HOLDS)),
    Null("weight noise (classes)", noisy_classes, dict.fromkeys(_RAISED, HOLDS)),
    Null("permuted labels, trained", permuted_labels, dict.fromkeys(_STARTS, HOLDS)),
    Null("shuffled layers", shuffled_layers, dict.fromkeys(_TRENDS, HOLDS)),
    Null("shuffled map types", shuffled_types, dict.fromkeys(_CANDIDATES, HOLDS)),
    Null(
        "border at the truth (classes)",
        classes_at_the_truth,
        {"linguistic-features-get-little-attention": BORDER},
    ),
    Null(
        "border at the truth ([CLS] and links)",
        links_at_the_truth,
        dict.fromkeys((*_FROM_CLS, *_DIAGONAL), BORDER),
    ),
    Null("border at the truth ([SEP])", separators_at_the_truth, dict.fromkeys(_SEP, BORDER)),
)
