"""Probes of trees in other languages: directions that languages share, do not share, or lack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted_links
import planted_trees as planted
from bertology.annotated import states as module
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError, ParameterError
from bertology.results.result import Result
from bertology.studies.languages.structural_probe_transfer import (
    ALL,
    OTHERS,
    StructuralProbeTransfer,
)
from made_states import MadeStates
from result_conformance import ResultConformance, claims_of

WIDTH = 16
CODES = ("de", "en", "fi", "fr")
ONE = "primer-multilingual.trees-by-probes-of-another-language"
OTHER = "primer-multilingual.trees-by-a-probe-of-all-others"
pytestmark = pytest.mark.usefixtures("few_steps")


def corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """The same items in four languages, each with a tree of its own that nothing tells of."""
    rng, examples = np.random.default_rng(seed), []
    for code in CODES:
        for item in range(size):
            n = int(rng.integers(5, 10))
            order, heads = rng.permutation(n), [-1] * n
            for at in range(1, n):
                heads[order[at]] = int(order[rng.integers(at)])
            words = [str(word) for word in rng.choice(planted.WORDS, n)]
            about = {
                "words": words,
                "heads": heads,
                "relations": ["root" if head < 0 else "dep" for head in heads],
                "language": code,
                "item": str(item),
            }
            examples.append(Example(f"{code}/{item}", " ".join(words), annotations=about))
    fields = {
        Field.TEXT, Field.WORDS, Field.HEADS, Field.RELATIONS, Field.LANGUAGE, Field.ITEM,
    }  # fmt: skip
    return Corpus("four languages", examples, frozenset(fields))


def paths(heads: list[int]) -> np.ndarray:
    """Every arc has a direction of its own; a word is the sum of those from the root to it."""
    found = np.zeros((len(heads), WIDTH))
    for word in range(len(heads)):
        at = word
        while heads[at] >= 0:
            found[word, at] = 1
            at = heads[at]
    return found


def simulated(monkeypatch: pytest.MonkeyPatch, *, told: str, seed: int = 0, size: int = 60) -> Any:
    """States that are noise, but those of the probed layer, which tell of trees.

    `shared`: in the same directions in all languages; `own`: in others in each; `no`: nowhere.
    """
    rng = np.random.default_rng(seed + 9)
    turned = np.linalg.qr(rng.normal(size=(2 * WIDTH, 2 * WIDTH)))[0]

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        sizes = [len(example.get("words")) for example in given]
        values = rng.normal(size=(planted.LAYERS + 1, sum(sizes), 2 * WIDTH))
        if told != "no" and "shuffled" not in reader.name:
            rows = []
            for example in given:
                place = CODES.index(example.get("language")) if told == "own" else 0
                hidden = np.zeros((len(example.get("words")), 2 * WIDTH))
                hidden[:, :WIDTH] = 2 * paths(example.get("heads"))
                if place:
                    order = np.random.default_rng(place).permutation(WIDTH)
                    signs = np.random.default_rng(place).normal(size=(WIDTH, WIDTH))
                    hidden[:, :WIDTH] = hidden[:, :WIDTH][:, order] @ signs / 4
                    hidden = np.roll(hidden, WIDTH if place % 2 else 0, axis=1)
                rows.append(hidden)
            values[-1] = np.concatenate(rows) @ turned + 0.05 * values[-1]
        found = MadeStates(values, sizes)
        found.chosen = None
        return found

    monkeypatch.setattr(module, "word_states", made)
    study = StructuralProbeTransfer(rank=16, layer=planted.LAYERS - 1)
    return planted_links.ask(study, planted.encoder(planted.model()), corpus(size, seed=seed))


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            found: Result = simulated(patch, told="shared")
        return found

    def test_shared_directions_serve_in_all_languages(self, result: Result) -> None:
        rows = result.tables["transfer"].set_index(["source", "target"])["uuas"]
        assert len(rows) == (len(CODES) + 2) * len(CODES)
        assert rows[:, "fi"].min() > 0.8
        assert (rows[ALL] > 0.8).all()
        assert (rows[OTHERS] > 0.8).all()
        said = claims_of(result)
        assert (said[ONE], said[OTHER]) == ("holds", "holds")
        assert result.answer.startswith("Some of it")


def test_directions_of_their_own_do_not_serve_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    result = simulated(monkeypatch, told="own")
    gains = result.tables["gains"].set_index("quantity")["value"]
    assert gains["own_gain"] > gains["transfer_gain"] + 0.1
    assert gains["transfer_over_own"] < -0.1


@pytest.mark.parametrize("seed", range(2))
def test_trees_of_chance_are_not_found(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    result = simulated(monkeypatch, told="no", seed=seed)
    assert result.answer.startswith("Nothing is sure")
    assert "holds" not in claims_of(result).values()


def test_what_is_scored_trained_in_no_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items stay together also where one language lacks some."""
    from bertology.annotated.trees.distances import tree_sentences
    from bertology.studies.languages.structural_probe_transfer import _by_item, _test_items

    texts = corpus(60)
    texts = replace(texts, examples=[e for e in texts if e.id not in ("fi/0", "fi/2", "de/3")])
    sizes = [len(example.get("words")) for example in texts]
    states = MadeStates(np.zeros((2, sum(sizes), 3)), sizes)
    by_item, items = _by_item(texts, tree_sentences(texts, states))
    for item in items:
        assert len({own[item].part for own in by_item.values() if item in own}) == 1
    scored = _test_items(by_item, items)
    assert "2" not in scored
    assert all(own[item].part == 2 for own in by_item.values() for item in scored)


def test_bad_requests_are_refused_in_words() -> None:
    reader = planted.encoder(planted.model())
    with pytest.raises(ParameterError, match="at most 2"):
        StructuralProbeTransfer(layer=3).check(reader, corpus())
    two = corpus()
    two = replace(two, examples=[e for e in two if e.get("language") in ("de", "en")])
    with pytest.raises(DataError, match="2 languages; 3 are needed"):
        StructuralProbeTransfer().check(reader, two)
    with pytest.raises(DataError, match="test sentences"):
        planted_links.ask(StructuralProbeTransfer(), reader, corpus(20))
