"""Layer scores: planted labels are placed at their layer and in their order; chance has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import planted_links
import planted_trees as planted
from bertology.annotated import states as module
from bertology.data.corpus import Corpus, Example, Field
from bertology.results.result import Result
from bertology.studies.probing.layer_scores import LayerScores, LayerScoresResult
from made_states import MadeStates
from result_conformance import ResultConformance, claims_of

KINDS, RELATIONS = ["NOUN", "VERB", "ADJ"], ["nsubj", "obj", "amod"]
EARLY, LATE, WORDS = 0, 2, 6
HOW: dict[str, Any] = {"resamples": 200, "halves": 3, "tasks": ("pos", "relation")}
NOISE: dict[str, Any] = {}  # what shuffled weights tell with seed 0, the same whatever is planted


pytestmark = pytest.mark.usefixtures("few_steps")


def corpus(size: int = 150, *, seed: int = 0) -> Corpus:
    """Sentences of words, of which any may be of any part of speech and in any relation."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(size):
        words = [str(word) for word in rng.choice(planted.WORDS, WORDS)]
        annotations: dict[str, Any] = {
            "words": words,
            "pos": [str(kind) for kind in rng.choice(KINDS, WORDS)],
            "relations": [str(kind) for kind in rng.choice(RELATIONS, WORDS)],
            "heads": [-1, *range(WORDS - 1)],
        }
        examples.append(Example(str(i), " ".join(words), annotations=annotations))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.RELATIONS}
    return Corpus("labels", examples, frozenset(fields))


def simulated(
    monkeypatch: pytest.MonkeyPatch,
    at: dict[str, int],
    *,
    kept: bool = False,
    seed: int = 0,
    sharp: float = 5.0,
    of_relations: float | None = None,
    copies: dict[str, Any] | None = None,
) -> LayerScoresResult:
    """Noise, but that labels of a field are written after a layer (`at`), there only or from there.

    Each field has dimensions of its own, and labels are so `sharp`; relations, if given, by their
    own number.
    """
    made = made_states(at, kept=kept, seed=seed, sharp=sharp, of_relations=of_relations)
    monkeypatch.setattr(module, "word_states", made)
    reader, texts = planted.encoder(planted.model()), corpus(seed=seed)
    found = planted_links.ask(LayerScores(**HOW), reader, texts, copies=copies)
    assert isinstance(found, LayerScoresResult)
    return found


def made_states(
    at: dict[str, int],
    *,
    kept: bool = False,
    seed: int = 0,
    sharp: float = 5.0,
    of_relations: float | None = None,
) -> Callable[..., MadeStates]:
    """In the place of a model: states with these labels, none in those of shuffled weights."""
    rng = np.random.default_rng(seed + 99)

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        values = rng.normal(size=(planted.LAYERS + 1, WORDS * len(given), 8))
        for field, layer in at.items() if "shuffled" not in reader.name else ():
            names = KINDS if field == "pos" else RELATIONS
            first = 0 if field == "pos" else len(KINDS)
            for word, kind in enumerate(k for e in given for k in e.get(field)):
                end = None if kept else layer + 2
                size = sharp if field == "pos" or of_relations is None else of_relations
                values[layer + 1 : end, word, first + names.index(kind)] += size
        return MadeStates(values, [WORDS] * len(given))

    return made


class TestResult(ResultConformance):
    measures = frozenset({"pos-accuracy", "relation-weight", "relation-gain", "pos-place"})

    @staticmethod
    def make() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            return simulated(patch, {"pos": EARLY, "relations": LATE}, copies=NOISE)

    def test_each_task_is_placed_where_it_was_written(self, result: Result) -> None:
        tasks = result.table("tasks").set_index("task")
        for task, layer in (("pos", EARLY), ("relation", LATE)):
            row = tasks.loc[task]
            assert row["layer"] == layer
            assert row["expected"] == pytest.approx(layer, abs=0.25)
            assert row["expected_low"] <= layer <= row["expected_high"]
            assert row["centre"] == pytest.approx(layer, abs=0.2)
            rows = result.table("layers").set_index(["task", "layer"]).loc[task]
            assert rows.loc[layer, "weight"] > 0.9
            assert rows.loc[layer, "gain_low"] > 0.3
            assert rows["among_best"].sum() == 1
            assert rows.loc[layer, "among_best"]
            assert rows["weight"].sum() == pytest.approx(1)

    def test_the_order_is_told(self, result: Result) -> None:
        (pair,) = result.table("pairs").to_dict("records")
        assert (pair["first"], pair["second"]) == ("pos", "relation")
        assert pair["later"] == pytest.approx(LATE - EARLY, abs=0.3)
        claims = claims_of(result)
        assert claims["primer-layers.parts-of-speech-before-relations"] == "holds"
        # Four layers have too few orders for one to be surely the lower ones.
        assert claims["primer-layers.parts-of-speech-in-lower-layers"] == "inconclusive"
        assert result.evidence()["pos_lower_over_others"].value > 0.1
        assert "another order" in result.evidence()["pos_lower_over_others"].remedy
        assert claims["primer-layers.parts-of-speech-in-middle-layers"] == "fails"
        assert claims["primer-layers.middle-layers-are-most-transferable"] == "fails"
        assert claims["primer-layers.relations-before-roles"] == "not-applicable"


def test_the_other_order_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept after its layer is expected at that layer, too."""
    places = {"pos": LATE, "relations": EARLY}
    result = simulated(monkeypatch, places, kept=True, copies=NOISE)
    tasks = result.table("tasks").set_index("task")
    assert tasks.loc["pos", "expected"] == pytest.approx(LATE, abs=0.25)
    assert tasks.loc["relation", "expected"] == pytest.approx(EARLY, abs=0.3)
    assert claims_of(result)["primer-layers.parts-of-speech-before-relations"] == "fails"


@pytest.mark.parametrize("seed", range(2))
def test_labels_of_chance_have_no_place_and_no_order(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    result = simulated(monkeypatch, {}, seed=seed)
    assert result.answer.startswith("Nothing is sure")
    assert result.table("pairs").empty
    assert set(claims_of(result).values()) == {"not-applicable"}


def test_tasks_at_the_same_layer_have_no_sure_order(monkeypatch: pytest.MonkeyPatch) -> None:
    result = simulated(monkeypatch, {"pos": 1, "relations": 1}, sharp=2.0, copies=NOISE)
    claims = claims_of(result)
    outcome = claims["primer-layers.parts-of-speech-before-relations"]
    assert outcome in ("inconclusive", "negligible")
    # Four layers have too few orders for two of them to be surely the middle.
    assert claims["primer-layers.parts-of-speech-in-middle-layers"] == "inconclusive"
    assert claims["primer-layers.middle-layers-are-most-transferable"] == "inconclusive"
    for name in ("pos", "tasks"):
        found = result.evidence()[f"{name}_middle_over_ends"]
        assert found.value > 0.05
        assert "another order" in found.remedy


class TestChange(ResultConformance):
    """A model that lost what another one told after its last layer."""

    measures = frozenset({"pos-change", "relation-change"})

    @staticmethod
    def make() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            states = made_states({"pos": EARLY, "relations": LATE})
            lost = made_states({"pos": EARLY})

            def read(reader: Any, given: Corpus, **how: Any) -> MadeStates:
                return (lost if reader.name == "after" else states)(reader, given)

            patch.setattr(module, "word_states", read)
            before, after = (planted.encoder(planted.model(), n) for n in ("before", "after"))
            study = LayerScores(before="before", **HOW)
            return planted_links.ask(study, after, corpus(), copies=NOISE, before=before)

    def test_what_changed_is_told(self, result: Result) -> None:
        rows = result.table("change").set_index(["task", "layer"])
        assert rows.loc[("relation", LATE), "before"] > 0.9
        assert rows.loc[("relation", LATE), "change_high"] < -0.3
        sure = (rows["change_low"] > 0) | (rows["change_high"] < 0)
        assert sure.sum() == 1


def test_what_is_easier_does_not_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By expected layers alone it would: the first layer tells nearly all of it."""
    result = simulated(
        monkeypatch,
        {"pos": 0, "relations": 0},
        kept=True,
        sharp=3.0,
        of_relations=1.0,
        copies=NOISE,
    )
    (pair,) = result.table("pairs").to_dict("records")
    assert pair["later"] > 0.2
    assert claims_of(result)["primer-layers.parts-of-speech-before-relations"] != "holds"
