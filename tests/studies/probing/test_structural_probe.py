"""Structural probes: planted trees are found at their layer and nowhere else, chance ones never."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import planted_links
import planted_trees as planted
from bertology.annotated import states as module
from bertology.annotated.trees.distances import tree_distances
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.results.result import Result
from bertology.studies.probing.structural_probe import StructuralProbe, StructuralProbeResult
from made_states import MadeStates
from result_conformance import ResultConformance, claims_of

PLANTED, WIDTH = 1, 16
pytestmark = pytest.mark.usefixtures("few_steps")
FOUND = "primer-syntax.trees-by-a-linear-map"
MIDDLE = "primer-layers.trees-are-best-in-the-middle"
DEPTHS = "primer-layers.depths-are-best-in-the-middle"


def random_tree(rng: np.random.Generator, n: int) -> list[int]:
    """Each word hangs from one that came before it in a random order."""
    order, heads = rng.permutation(n), [-1] * n
    for at in range(1, n):
        heads[order[at]] = int(order[rng.integers(at)])
    return heads


def corpus(size: int = 150, *, seed: int = 0) -> Corpus:
    """Sentences of five to nine words and a full stop, with trees that nothing tells of."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(size):
        n = int(rng.integers(5, 10))
        words = [str(word) for word in rng.choice(planted.WORDS, n)]
        heads = random_tree(rng, n)
        annotations = {
            "words": [*words, "."],
            "heads": [*heads, heads.index(-1)],
            "relations": ["root" if head < 0 else "dep" for head in heads] + ["punct"],
        }
        examples.append(Example(str(i), " ".join(words) + ".", annotations=annotations))
    fields = frozenset({Field.TEXT, Field.WORDS, Field.HEADS, Field.RELATIONS})
    return Corpus("trees of chance", examples, fields)


def ask(encoder: Any, texts: Corpus, **how: Any) -> StructuralProbeResult:
    study = StructuralProbe(**{"resamples": 200, "ranks": (4, 16), **how})
    found = planted_links.ask(study, encoder, texts)
    assert isinstance(found, StructuralProbeResult)
    return found


def path_states(heads: Sequence[int]) -> np.ndarray:
    """Every arc has a direction of its own; a word is the sum of those from the root down to it."""
    found = np.zeros((len(heads), WIDTH))
    for word in range(len(heads)):
        at = word
        while heads[at] >= 0:
            found[word, at] = 1
            at = heads[at]
    return found


def simulated(monkeypatch: pytest.MonkeyPatch, *, told: bool, seed: int = 0) -> Any:
    """States that are noise, but those after layer 1, a linear map of the tree's paths."""
    texts, rng = corpus(seed=seed), np.random.default_rng(seed + 99)
    turned = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0] * rng.uniform(0.5, 2, WIDTH)

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        sizes = [len(example.get("words")) for example in given]
        values = rng.normal(size=(planted.LAYERS + 1, sum(sizes), WIDTH))
        if told and "shuffled" not in reader.name:
            paths = np.concatenate([path_states(example.get("heads")) for example in given])
            values[PLANTED + 1] = paths @ turned
        return MadeStates(values, sizes)

    monkeypatch.setattr(module, "word_states", made)
    return ask(planted.encoder(planted.model()), texts)


class TestResult(ResultConformance):
    measures = frozenset({"uuas", "dspr", "root", "nspr"})

    @staticmethod
    def make() -> Result:
        return ask(planted.encoder(planted.random_model()), planted.corpus(80), keep=2)

    def test_what_the_input_tells_is_no_gain(self, result: Result) -> None:
        """Words say where they hang in these sentences, and the input knows words."""
        scores = result.table("scores").set_index("score")
        assert scores.loc["uuas", "gain_low"] <= 0
        assert claims_of(result)[FOUND] != "holds"

    def test_sentences_are_drawn_by_layer(self, result: Any) -> None:
        assert "layer 0" in str(result.arcs(1, candidate=1)._suptitle)
        result.plane(1, layer=-1)
        with pytest.raises(UnknownNameError, match="layer"):
            result.plane(0, layer=7)
        with pytest.raises(UnknownNameError, match="kept sentence"):
            result.plane(5)


def test_the_planted_layer_has_the_trees_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    result = simulated(monkeypatch, told=True)
    rows = result.table("layers").set_index("layer")
    assert rows.loc[PLANTED, "uuas"] > 0.98
    assert (
        rows.loc[PLANTED, ["dspr", "dspr_by_length", "nspr"]].min() > 0.9
    )  # equal distances are in any order
    assert rows.loc[PLANTED, "root"] > 0.9
    others = rows.drop(PLANTED)
    assert (others["uuas"] < 0.45).all()
    assert (others["dspr"] < 0.4).all()
    scores = result.table("scores").set_index("score")
    assert (scores["layer"] == PLANTED).all()
    assert (scores["gain_low"] > 0.2).all()
    assert rows.loc[PLANTED, "distance_rank"] == WIDTH  # paths of nine arcs need more than four
    assert result.answer.startswith("Some of it")
    # Three layers have too few orders for one of them to be surely the middle.
    said = {FOUND: "holds", MIDDLE: "inconclusive", DEPTHS: "inconclusive"}
    assert claims_of(result) == said
    for name in ("middle_over_ends", "depths_middle_over_ends"):
        assert result.evidence()[name].value > 0.1
        assert "another order" in result.evidence()[name].remedy


@pytest.mark.parametrize("seed", range(2))
def test_trees_of_chance_are_not_found(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    result = simulated(monkeypatch, told=False, seed=seed)
    assert result.answer.startswith("Nothing is sure")
    assert "holds" not in claims_of(result).values()


def test_what_is_no_tree_or_too_short_is_left_out_and_counted() -> None:
    texts = corpus(100)
    examples = list(texts)
    examples[0].annotations["heads"][:2] = [1, 0]  # a circle
    heads = examples[1].annotations["heads"]
    heads[next(at for at, head in enumerate(heads) if head >= 0)] = -1  # two roots
    examples[3].annotations["relations"][:-2] = ["punct"] * (len(examples[3].get("words")) - 2)
    result = ask(planted.encoder(planted.random_model()), texts, keep=0)
    assert (result.facts["broken"], result.facts["short"]) == (2, 1)
    assert result.facts["trained"] + result.facts["held"] + result.facts["examples"] == 97


def test_distances_are_those_of_the_tree() -> None:
    distances = tree_distances(np.array([1, -1, 1, 2, 2]))
    assert distances is not None
    assert distances.tolist() == [
        [0, 1, 2, 3, 3],
        [1, 0, 1, 2, 2],
        [2, 1, 0, 1, 1],
        [3, 2, 1, 0, 2],
        [3, 2, 1, 2, 0],
    ]
    for heads in ([1, 0, -1], [-1, -1], [0, -1], [5, -1]):
        assert tree_distances(np.array(heads)) is None
    rng = np.random.default_rng(0)
    for n in (1, 2, 9):
        heads = random_tree(rng, n)
        paths = path_states(heads)
        squares = ((paths[:, None] - paths) ** 2).sum(-1)
        assert np.array_equal(tree_distances(np.array(heads)), squares)


def test_bad_requests_are_refused_in_words() -> None:
    reader = planted.encoder(planted.model())
    with pytest.raises(ParameterError, match="from 1"):
        StructuralProbe(ranks=(0, 4)).check(reader, corpus())
    with pytest.raises(DataError, match="test sentences have a tree"):
        ask(reader, corpus(30))
