"""Every study's result says of heads and layers what it knows, and what its figures show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import planted
import planted_links
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import ParameterError
from bertology.model.encoder import Encoder
from bertology.results.measures import Measure, dashed
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies import STUDIES
from bertology.studies.ablation.head_ablation import HeadAblation
from bertology.studies.ablation.head_sets import HeadSets
from bertology.studies.attention.attention_change import AttentionChange, AttentionChangeResult
from bertology.studies.attention.attention_maps import AttentionMaps
from bertology.studies.attention.map_types import MapTypes
from bertology.studies.attention.relation_heads import RelationHeads
from bertology.studies.attention.token_classes import TokenClasses
from bertology.studies.attention.token_to_token import TokenToToken
from bertology.studies.designs.trials import MEASURES
from bertology.studies.joins.head_profile import head_profile
from bertology.studies.training.architecture_sweep import ArchitectureSweep
from bertology.studies.training.fine_tuning_starts import NAMES, FineTuningStarts
from bertology.studies.training.pretraining_objectives import PretrainingObjectives


def classifier() -> Encoder:
    return Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")


def linking(*heads: tuple[int, int], name: str = "links") -> Encoder:
    return Encoder(planted_links.model(*heads), planted_links.tokenizer(), name=name)


def ablation(**how: Any) -> Result:
    study = HeadAblation(resamples=100, **how)
    found: Result = planted_links.ask(study, classifier(), planted.corpus(90))
    return found


def raced() -> Result:
    return ablation(racing=True)


def sets_of_heads() -> Result:
    study = HeadSets(sizes=(1, 2), sets=3, resamples=100)
    found: Result = planted_links.ask(study, classifier(), planted.corpus(40))
    return found


def types() -> Result:
    found: Result = planted_links.ask(MapTypes(), classifier(), planted.corpus(12))
    return found


def maps() -> Result:
    found: Result = planted_links.ask(AttentionMaps(), classifier(), planted.corpus(12))
    return found


def change() -> Result:
    torch.manual_seed(0)
    one, before = (
        Encoder(tiny.model("bert", seed=seed), planted.tokenizer(), name=name)
        for seed, name in ((0, "after"), (1, "before"))
    )
    study = AttentionChange(before="before", resamples=100)
    found = planted_links.ask(study, one, planted.corpus(12), before=before)
    provenance = found.provenance
    about = {"before": {"name": "before", "fingerprint": "b"}}
    again = Provenance(
        provenance.study, 1, provenance.parameters, provenance.model, provenance.corpus,
        others=about,
    )  # fmt: skip
    return AttentionChangeResult(again, found.tables, found.arrays)


def classes() -> Result:
    study = TokenClasses(other="before", resamples=100)
    found: Result = planted_links.ask(
        study, linking(planted_links.NOUNS), planted_links.corpus(20), other=linking()
    )
    return found


def tokens() -> Result:
    study = TokenToToken(relations=("verb-subject", "obj"), resamples=100)
    found: Result = planted_links.ask(study, linking(planted_links.LINK), planted_links.corpus(30))
    return found


def with_adverbs_first(corpus: Corpus) -> Corpus:
    """Adverbs before some sentences: links that begin at one place leave nothing to compare."""
    examples = []
    for i, example in enumerate(corpus):
        given, more = example.annotations, i % 4
        annotations = {
            "words": ["now"] * more + given["words"],
            "heads": [-1] * more + [h + more if h >= 0 else -1 for h in given["heads"]],
            "relations": ["dep"] * more + given["relations"],
        }
        text = "now " * more + example.text
        examples.append(Example(example.id, text, annotations=annotations))
    fields = {Field.TEXT, Field.WORDS, Field.HEADS, Field.RELATIONS}
    return Corpus("shifted", examples, frozenset(fields))


def relations() -> Result:
    study = RelationHeads(relation="nsubj", min_distance=1, max_tokens=0, resamples=100)
    corpus = with_adverbs_first(planted_links.corpus(60))
    found: Result = planted_links.ask(study, linking(planted_links.LINK), corpus)
    return found


def profile() -> Result:
    return head_profile([ablation(), types()], resamples=100)


def made_up(study: str) -> Provenance:
    corpus = {"name": "made-up", "fingerprint": "c"}
    return Provenance(study, 1, {}, {"name": "m", "fingerprint": "f"}, corpus)


def starts() -> Result:
    parts = {}
    for seed in range(2):
        for name in NAMES:
            facts = {
                "start": name, "seed": seed, "task": "t", "train_size": 9, "truncated": 0,
                "train_fingerprint": "x", "truncated_validation": 0, "learning_rate": 1e-3,
                "constant_accuracy": 0.5,
            }  # fmt: skip
            parts[f"{name}-seed-{seed}"] = xr.Dataset({"accuracy": 0.5 + seed / 10}, attrs=facts)
    return FineTuningStarts(seeds=2).conclude(parts, made_up("fine-tuning-starts"))


def trials(study: Any, name: str) -> Result:
    parts = {}
    at = np.linspace(0.1, 1, 5)
    for seed in range(2):
        for variant in study.variants:
            numbers: dict[str, Any] = dict.fromkeys(MEASURES, 0.5 + seed / 10)
            shapes = getattr(study, "shapes", dict)()
            shape = shapes.get(variant, shapes.get("base"))
            if shape is not None:
                numbers |= {"layers": shape.layers, "heads": shape.heads, "flops_per_token": 1.0}
                numbers |= {f"curve_{c}": ("evaluation", at) for c in ("step", "seconds", "loss")}
            numbers["seconds"] = 1.0
            facts = {"variant": variant, "seed": seed, "task": "t", "pairs": "p", "baseline": 0.4}
            parts[f"{variant}-seed-{seed}"] = xr.Dataset(numbers, attrs=facts)
    found: Result = study.conclude(parts, made_up(name))
    return found


def objectives() -> Result:
    return trials(PretrainingObjectives(seeds=2), "pretraining-objectives")


def sweep() -> Result:
    return trials(ArchitectureSweep(seeds=2), "architecture-sweep")


# What is measured of heads and layers, or nothing: name of the study, its result, some measures.
MADE: dict[str, tuple[Callable[[], Result], set[str]]] = {
    "head-ablation": (
        lambda: ablation(sets=("0.1+1.2",)),
        {"ablation-effect", "ablation-loss", "first-order-importance", "layer-ablation-effect"},
    ),
    "head-ablation, racing": (raced, {"ablation-effect", "layer-ablation-effect"}),
    "head-sets": (sets_of_heads, set()),
    "map-types": (types, {"map-type", "share-vertical-diagonal", "form-entropy"}),
    "attention-maps": (maps, {"attention-previous", "attention-entropy", "layer-attention-self"}),
    "attention-change": (change, {"change", "divergence", "layer-change"}),
    "token-classes": (classes, {"weight-sep", "excess-noun", "change-cls", "layer-share-words"}),
    "token-to-token": (tokens, {"obj-excess", "verb-subject-share", "from-cls-to-sep"}),
    "relation-heads": (
        relations,
        {"nsubj-excess", "nsubj-weight", "nsubj-named", "nsubj-excess-place"},
    ),
    "head-profile": (profile, {"role-in-task"}),
    "fine-tuning-starts": (starts, set()),
    "pretraining-objectives": (objectives, set()),
    "architecture-sweep": (sweep, set()),
}


def test_every_study_is_here() -> None:
    built_in = {n for n in STUDIES if STUDIES.get(n).__module__.startswith("bertology.")}
    assert built_in <= set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_measures_and_captions_are_whole(name: str) -> None:
    make, wanted = MADE[name]
    result = make()
    measures = result.measures()
    names = [m.name for m in measures]
    assert len(set(names)) == len(names)
    assert wanted <= set(names)
    assert bool(names) == bool(wanted)
    for measure in measures:
        check(measure)
    shapes = {m.values.shape for m in measures if m.of_heads}
    assert len(shapes) <= 1
    assert {m.values.shape for m in measures if not m.of_heads} <= {s[:1] for s in shapes}
    captions = result.captions()
    assert list(captions) == list(result.figures())
    for text in captions.values():
        assert text.endswith(".")
        assert 60 < len(text) < 600


def check(measure: Measure) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", measure.name)
    assert measure.values.ndim in (1, 2)
    assert measure.title
    assert "{" not in measure.title + measure.reading
    assert measure.reading.endswith(".")
    assert bool(measure.unit) != bool(measure.kinds)
    assert (measure.low is None) == (measure.high is None)
    if measure.kinds:
        assert set(np.unique(measure.values)) <= set(range(len(measure.kinds)))
    if measure.low is not None and measure.high is not None:
        known = np.isfinite(measure.low) & np.isfinite(measure.high)
        assert known.any()
        assert (measure.low <= measure.values + 1e-9)[known].all()
        assert (measure.values <= measure.high + 1e-9)[known].all()
    if measure.sure is not None:
        assert measure.sure.dtype == bool


def test_what_was_planted_is_what_the_measures_say() -> None:
    found = {m.name: m for m in ablation().measures()}
    effect = found["ablation-effect"]
    assert effect.unit == "points of accuracy"
    assert effect.sure is not None
    assert effect.sure[planted.CARRIER]
    assert effect.values[planted.CARRIER] == effect.values.min() < -10
    links = {m.name: m for m in tokens().measures()}["verb-subject-excess"]
    assert links.sure is not None
    assert list(map(tuple, np.argwhere(links.sure))) == [planted_links.LINK]
    nouns = {m.name: m for m in classes().measures()}["weight-noun"]
    assert np.unravel_index(nouns.values.argmax(), nouns.values.shape) == planted_links.NOUNS
    kinds = {m.name: m for m in types().measures()}["map-type"]
    assert kinds.kinds == MAP_TYPES


def test_a_measure_whose_bounds_have_another_shape_is_refused() -> None:
    with pytest.raises(ParameterError, match="low"):
        Measure("a", "A", np.zeros((2, 2)), low=np.zeros(2))


def test_names_of_the_data_become_pieces_of_names() -> None:
    assert dashed("role:Agent") == "role-agent"
    assert dashed("vertical+diagonal") == "vertical-diagonal"
