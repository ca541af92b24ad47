"""Edge probes: planted labels are told by the right layer and no other; shuffled ones by none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted_links
import planted_trees as planted
from bertology.annotated import states as module
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError
from bertology.results.result import Result
from bertology.studies.probing.edge_probes import EdgeProbes, EdgeProbesResult
from made_states import MadeStates
from result_conformance import ResultConformance, check_answer, claims_of

KINDS, PLANTED = ["NOUN", "VERB", "ADJ"], 2


pytestmark = pytest.mark.usefixtures("few_steps")


def corpus(size: int = 60, *, seed: int = 0) -> Corpus:
    """Sentences of six words, of which any may be of any part of speech."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(size):
        words = [str(word) for word in rng.choice(planted.WORDS, 6)]
        kinds = [str(kind) for kind in rng.choice(KINDS, 6)]
        annotations = {"words": words, "pos": kinds}
        examples.append(Example(str(i), " ".join(words), annotations=annotations))
    fields = frozenset({Field.TEXT, Field.WORDS, Field.POS})
    return Corpus("parts of speech", examples, fields)


def ask(
    encoder: Any, texts: Corpus, copies: dict[str, Any] | None = None, **how: Any
) -> EdgeProbesResult:
    study = EdgeProbes(**{"resamples": 200, **how})
    found = planted_links.ask(study, encoder, texts, copies=copies)
    assert isinstance(found, EdgeProbesResult)
    return found


def simulated(monkeypatch: pytest.MonkeyPatch, *, told: bool, seed: int = 0) -> EdgeProbesResult:
    """States that are noise, but those after layer 2, which tell the part of speech."""
    texts, rng = corpus(100, seed=seed), np.random.default_rng(seed + 99)

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        values = rng.normal(size=(planted.LAYERS + 1, 6 * len(given), 8))
        if told and "shuffled" not in reader.name:
            for at, kind in enumerate(k for e in given for k in e.get("pos")):
                values[PLANTED + 1, at, KINDS.index(kind)] += 4
        return MadeStates(values, [6] * len(given))

    monkeypatch.setattr(module, "word_states", made)
    return ask(planted.encoder(planted.model()), texts)


class TestResult(ResultConformance):
    measures = frozenset({"pos-accuracy", "parent-selectivity", "arc-accuracy"})

    @staticmethod
    def make() -> Result:
        tasks = ("pos", "parent", "arc")
        return ask(planted.encoder(planted.random_model()), planted.corpus(60), tasks=tasks)

    def test_what_words_tell_alone_is_no_gain(self, result: Result) -> None:
        tasks = result.table("tasks").set_index("task")
        assert tasks.loc["pos", "frequent"] == 1  # every word has one part of speech
        assert tasks.loc["pos", "gain_low"] <= 0
        assert "holds" not in {claims_of(result)["primer-syntax.parts-of-speech-are-told"]}


def test_the_planted_layer_tells_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    result = simulated(monkeypatch, told=True)
    rows = result.table("layers").set_index("layer")
    assert rows.loc[PLANTED, "accuracy"] > 0.9
    assert rows.loc[PLANTED, "selectivity_low"] > 0
    assert rows.loc[PLANTED, "compression"] > 1.5
    others = rows.drop(PLANTED)
    assert (others["accuracy"] < 0.5).all()
    assert (others["compression"] < 1.05).all()
    (task,) = result.table("tasks").to_dict("records")
    assert (task["layer"], task["unseen"]) == (PLANTED, 0)
    assert task["gain_low"] > 0.2
    assert "part of speech (layer 2" in result.answer
    assert claims_of(result)["primer-syntax.parts-of-speech-are-told"] == "holds"


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_nothing_tells_are_not_told(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    result = simulated(monkeypatch, told=False, seed=seed)
    assert result.answer.startswith("Nothing is sure")
    assert claims_of(result)["primer-syntax.parts-of-speech-are-told"] != "holds"


def test_bad_requests_are_refused_in_words() -> None:
    reader = planted.encoder(planted.model())
    with pytest.raises(UnknownNameError, match="grammar"):
        EdgeProbes(tasks=("grammar",)).check(reader, corpus())
    with pytest.raises(CapabilityError, match="needs heads"):
        EdgeProbes(tasks=("arc",)).check(reader, corpus())
    plain = Corpus("plain", [Example("0", "a b")] * 30, frozenset({Field.TEXT}))
    with pytest.raises(CapabilityError, match="annotates nothing"):
        EdgeProbes().check(reader, plain)
    same = corpus()
    for example in same:
        example.annotations["pos"][:] = ["NOUN"] * 6
    with pytest.raises(DataError, match="two answers or more"):
        ask(reader, same)
    with pytest.raises(DataError, match="'pos' has 1 answer"):
        ask(reader, same, tasks=("pos",))
    with pytest.raises(DataError, match="test sentences"):
        ask(reader, corpus(30))


def test_attention_tells_the_arc_where_the_head_was_planted_and_nowhere_else() -> None:
    reader = planted.encoder(planted.model())
    result = ask(reader, planted.corpus(100), given="attention")
    rows = result.table("layers").set_index(["task", "layer"]).loc["arc"]
    layer = planted.TREE[0]
    assert rows.loc[layer, "accuracy"] > 0.9
    assert rows.loc[layer, "selectivity_low"] > 0
    assert (rows.drop(layer)["accuracy"] < 0.7).all()
    tasks = result.table("tasks").set_index("task")
    task = tasks.loc["arc"]
    assert task["layer"] == layer
    assert task["accuracy_low"] > max(task["input"], task["shuffled"])
    assert set(tasks.index) == {"arc", "arc-relation"}
    assert set(claims_of(result).values()) == {"not-applicable"}  # claims are about states
    assert "given attention" in result.reasons()[""]


def test_attention_of_a_model_without_the_head_tells_no_arc() -> None:
    reader = planted.encoder(planted.model(planted=False))
    result = ask(reader, planted.corpus(100), given="attention", tasks=("arc",))
    (task,) = result.table("tasks").to_dict("records")
    assert task["gain_low"] <= 0


def test_attention_is_asked_about_pairs_only() -> None:
    reader = planted.encoder(planted.model())
    with pytest.raises(CapabilityError, match="about single words"):
        EdgeProbes(tasks=("pos",), given="attention").check(reader, planted.corpus(60))
    with pytest.raises(CapabilityError, match="annotates nothing"):
        EdgeProbes(given="attention").check(reader, corpus())


def _phrases(size: int = 100) -> Corpus:
    """Chunks of two to four words; one of their words is of the chunk's kind, by its own part."""
    rng = np.random.default_rng(0)
    examples = []
    for i in range(size):
        words = [str(word) for word in rng.choice(planted.WORDS, 6)]
        ends = (int(rng.integers(2, 5)), 6)
        kinds = [str(kind) for kind in rng.choice(["NP", "VP"], 2)]
        chunks = [[a, b, kind] for a, b, kind in zip((0, ends[0]), ends, kinds, strict=True)]
        marks = [kind if rng.random() < 0.9 else "VP" for kind in kinds]  # what one word tells
        annotations = {"words": words, "pos": [str(k) for k in rng.choice(KINDS, 6)]}
        annotations |= {"chunks": chunks, "marks": marks}
        examples.append(Example(str(i), " ".join(words), annotations=annotations))
    fields = frozenset({Field.TEXT, Field.WORDS, Field.POS, Field.CHUNKS})
    return Corpus("phrases", examples, fields)


def test_weights_of_words_are_learnt_where_spans_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marked word tells its chunk; parts of speech have spans of one word, and that is told."""
    texts = _phrases()

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        rng = np.random.default_rng(1)
        values = rng.normal(size=(planted.LAYERS + 1, len(given), 6, 8))
        values[..., 0] *= 6
        for i, example in enumerate(given):
            for (first, end, _), kind in zip(
                example.get("chunks"), example.annotations["marks"], strict=True
            ):
                at = rng.integers(first, end)
                if "shuffled" not in reader.name:
                    values[PLANTED + 1, i, at, :2] = (4 if kind == "NP" else -4), 4
        return MadeStates(values.reshape(planted.LAYERS + 1, -1, 8), [6] * len(given))

    monkeypatch.setattr(module, "word_states", made)
    reader, tasks = planted.encoder(planted.model()), ("pos", "chunk")
    copies: dict[str, Any] = {}  # those of means serve both: they are not looked at
    mean, own = (
        ask(reader, texts, copies, spans=how, tasks=tasks) for how in ("mean", "attentive")
    )
    rows = [of.table("layers").set_index(["task", "layer"])["accuracy"] for of in (mean, own)]
    assert rows[1]["chunk", PLANTED] > 0.85 > rows[0]["chunk", PLANTED] + 0.1
    assert rows[1]["pos"].equals(rows[0]["pos"])
    assert ("one_word" in mean.facts, own.facts["one_word"]) == (False, "pos")
    assert "Spans of one word are as with means: pos." in own.answer
    check_answer(own.answer)
    caption = next(d.caption for d in own.drawings() if d.name == "tasks")
    assert "spans of one word leave nothing to learn (pos)" in caption


@pytest.mark.parametrize("how", [{"given": "attention"}, {"probe": "hidden"}])
def test_weights_of_words_need_states_and_linear_probes(how: dict[str, str]) -> None:
    reader = planted.encoder(planted.model())
    with pytest.raises(ParameterError, match="must be mean where"):
        EdgeProbes(spans="attentive", **how).check(reader, planted.corpus(60))  # type: ignore[arg-type]


def test_what_could_not_be_asked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words without states, an answer that never trained, and pairs that have no question."""
    texts = corpus()
    for example in texts:
        example.annotations["coreference"] = []  # type: ignore[index]
    texts = replace(texts, fields=texts.fields | {Field.COREFERENCE})
    list(texts)[2].annotations["pos"][1] = "INTJ"  # one that is scored
    rng = np.random.default_rng(0)

    def made(reader: Any, given: Corpus, **_: Any) -> MadeStates:
        found = MadeStates(
            rng.normal(size=(planted.LAYERS + 1, 6 * len(given) - 2, 8)), [6] * len(given)
        )
        found.there[[0, 7]] = False
        found.counts[:2] = 5
        return found

    monkeypatch.setattr(module, "word_states", made)
    result = ask(planted.encoder(planted.model()), texts)
    assert (result.facts["missing"], result.facts["cut"], result.facts["unseen"]) == (2, 2, 1)
    assert result.facts["left_out"] == "coreference"
    (task,) = result.table("tasks").to_dict("records")
    assert (task["unseen"], task["classes"]) == (1, 3)
    told = (
        "2 words without a state, 2 questions about words without a state, "
        "1 answer that never trained, counted as wrong, coreference"
    )
    assert told in result.answer
    check_answer(result.answer)
    caption = next(d.caption for d in result.drawings() if d.name == "tasks")
    assert all(piece in caption for piece in told.split(", "))
