"""Minimal pairs of BLiMP: the shared model prefers the grammatical sentence, as its card says."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from bertology.model.encoder import Encoder
from bertology.model.interventions import SkipLayer
from bertology.model.masked_lm.cloze import cloze
from bertology.model.masked_lm.scoring import compare_pairs

PAIRS = 8
PARADIGMS = (
    "determiner_noun_agreement_1",
    "irregular_past_participle_verbs",
    "regular_plural_subject_verb_agreement_1",
)


@pytest.fixture(scope="module")
def encoder(shared: Path) -> Encoder:
    return Encoder.load(str(shared / "models" / "english-12x384-long"), head="mlm", device="cpu")


@pytest.fixture(scope="module")
def pairs(shared: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Paradigm -> its first good and bad sentences."""
    found = {}
    with tarfile.open(shared / "data" / "blimp.tar.xz") as archive:
        for member in archive:
            paradigm = Path(member.name).stem
            raw = archive.extractfile(member) if paradigm in PARADIGMS else None
            if raw is None:
                continue
            lines = io.TextIOWrapper(raw, encoding="utf-8").readlines()[:PAIRS]
            rows = [json.loads(line) for line in lines]
            found[paradigm] = (
                [r["sentence_good"] for r in rows],
                [r["sentence_bad"] for r in rows],
            )
    return found


def accuracy(encoder: Encoder, pairs: dict[str, tuple[list[str], list[str]]]) -> list[float]:
    good = [s for g, _ in pairs.values() for s in g]
    bad = [s for _, b in pairs.values() for s in b]
    right = compare_pairs(encoder, good, bad) > 0
    return [float(part.mean()) for part in np.split(right, len(pairs))]


def test_agreement_is_well_above_chance(
    encoder: Encoder, pairs: dict[str, tuple[list[str], list[str]]]
) -> None:
    assert len(pairs) == len(PARADIGMS)
    by_paradigm = accuracy(encoder, pairs)
    assert np.mean(by_paradigm) > 0.75
    assert min(by_paradigm) > 0.55


def test_a_broken_model_does_worse(
    encoder: Encoder, pairs: dict[str, tuple[list[str], list[str]]]
) -> None:
    with encoder.doing(SkipLayer(range(2, 12))):
        broken = accuracy(encoder, pairs)
    # Two layers get one paradigm as right as twelve do; over all of them they do worse.
    assert np.mean(broken) < np.mean(accuracy(encoder, pairs))


def test_a_blank_is_filled_with_the_number_its_subject_asks_for(encoder: Encoder) -> None:
    texts = ["The keys on the table {mask} old .", "The key on the table {mask} old ."]
    plural, singular = cloze(encoder, texts, candidates=["is", "are", "was", "were"])
    assert plural.log_probability("were") > plural.log_probability("was")
    assert singular.log_probability("was") > singular.log_probability("were")
    assert len(cloze(encoder, texts[0], top_k=5)[0].predictions) == 5
