"""Heads in the order of what was asked: by relation, by pattern, by likeness to a head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import bertology.server.searching as searching
from bertology.data.corpus import Example, Field
from bertology.data.words.token_pairs import has_tree
from bertology.model.encoder import Encoder
from bertology.model.reducers.map_scores import attention_along, attention_beyond_position
from bertology.server.searching import AnnotatedText, tagged
from explorer import answer, asking, encoder_of, maps_of, view_of

TEXT = "The dog chased the keys, it is here."
#       [CLS] the dog chase ##d the key ##s , it is here . [SEP]
TAGS = ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT", "PRON", "AUX", "ADV", "PUNCT"]
ROLES = ["", "subject", "", "", "object", "", "subject", "", "", ""]
SPANS = [(0, 3), (4, 7), (8, 14), (15, 18), (19, 23), (23, 24), (25, 27), (28, 30), (31, 35),
         (35, 36)]  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with asking(encoder_of()) as found:
        yield found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A tagger that knows one text; what it was asked."""
    seen: list[str] = []

    def tag(text: str, pair: str | None) -> AnnotatedText:
        seen.append(text)
        about: dict[str, Any] = {
            Field.WORDS: [text[a:b] for a, b in SPANS],
            Field.OFFSETS: [list(span) for span in SPANS],
            Field.POS: TAGS,
            Field.TAGS: ROLES,
        }
        return AnnotatedText(Example("here", text, pair, annotations=about), "somebody")

    monkeypatch.setattr(searching, "tagged", tag)
    return seen


def search(client: TestClient, view: dict[str, Any], **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer(client, "search", view=view, query=query)
    scores = [row["score"] for row in found["heads"]]
    backwards = scores if query.get("name") == "focused" else scores[::-1]
    assert backwards == sorted(scores), "the best is first"
    return found


def by_head(found: dict[str, Any]) -> dict[tuple[int, int], float]:
    return {(row["layer"], row["head"]): row["score"] for row in found["heads"]}


@pytest.mark.parametrize(
    ("name", "pairs", "said"),
    [
        ("verb-subject", [([3, 4], [2]), ([10], [9])], "chased → dog, is → it"),
        ("subject-verb", [([2], [3, 4]), ([9], [10])], "dog → chased, it → is"),
        ("verb-object", [([3, 4], [6, 7])], "chased → keys"),
        ("object-verb", [([6, 7], [3, 4])], "keys → chased"),
        ("pronoun-noun", [([9], [6, 7])], "it → keys"),
        ("noun-pronoun", [([6, 7], [9])], "keys → it"),
    ],
)
def test_links_between_words(
    client: TestClient, asked: list[str], name: str, pairs: list[Any], said: str
) -> None:
    text = f"{TEXT} "  # another text for each, or the tagger would not be asked again
    found = search(client, view_of(text), kind="relation", name=name)
    assert found["found"] == f"{said} (by somebody)"
    assert found["unit"] == "mean weight"
    _, maps = maps_of(client, view_of(text))
    expected = np.mean([maps[:, :, s][..., t].sum(-1).mean(-1) for s, t in pairs], axis=0)
    scores = by_head(found)
    assert len(scores) == 12
    assert all(scores[place] == pytest.approx(expected[place], abs=0.01) for place in scores)


def test_links_are_those_of_the_words_that_are_written(
    client: TestClient, asked: list[str]
) -> None:
    hidden = view_of(f"{TEXT}  ", masked=[2], off={"heads": [[0, 1]]})
    assert "chased → dog" in search(client, hidden, kind="relation", name="verb-subject")["found"]
    search(client, hidden, kind="relation", name="verb-object")
    assert len(asked) == 1, "a text is tagged once"


def test_classes_of_words(client: TestClient, asked: list[str]) -> None:
    found = search(client, view_of(f"{TEXT}   "), kind="relation", name="to-noun")
    assert found["found"] == "from words to dog, key, ##s (by somebody)"
    _, maps = maps_of(client, view_of(f"{TEXT}   "))
    keys, words = [2, 6, 7], range(1, 13)
    rows = [sum(maps[1, 2, q, k] for k in keys if k != q) for q in words]
    assert by_head(found)[1, 2] == pytest.approx(np.mean(rows), abs=0.01)
    nothing = search(client, view_of(f"{TEXT}   "), kind="relation", name="to-negation")
    assert nothing["heads"] == []
    assert nothing["found"] == "There is no negation in this text, by somebody."


def test_annotation_of_the_corpus_is_preferred(client: TestClient, asked: list[str]) -> None:
    shown = client.get("/api/examples", params={"task": "grammar", "number": 0}).json()
    found = search(client, view_of(shown["text"]), kind="relation", name="verb-subject")
    assert "by the corpus's own annotation" in found["found"]
    assert asked == []


def test_the_bundled_tagger_finds_the_links_of_a_plain_sentence() -> None:
    known = tagged("The old farmer chased the dogs.", None)
    assert known.by == "the bundled tagger"
    assert not has_tree(known.example)
    assert known.example.get(Field.POS)[3] == "VERB"
    pair = tagged("The farmer sleeps.", "He is tired.")
    assert len(pair.example.get(Field.POS)) == 8


PATTERNS = {
    "previous": lambda m: m.diagonal(-1).mean(),
    "next": lambda m: m.diagonal(1).mean(),
    "self": lambda m: m.diagonal().mean(),
    "first": lambda m: m[1:, 0].mean(),
    "separator": lambda m: m[:-1, -1].mean(),
    "punctuation": lambda m: (
        m[[i for i in range(14) if i not in (8, 12)]][:, [8, 12]].sum(1).sum()
        + m[8, 12]
        + m[12, 8]
    )
    / 14,
    "hidden": lambda m: np.delete(m[:, 2], 2).mean(),
    "again": lambda m: (m[1, 5] + m[5, 1]) / 2,
    "focused": lambda m: -(m * np.log(m + 1e-12)).sum(-1).mean(),
    "broad": lambda m: -(m * np.log(m + 1e-12)).sum(-1).mean(),
    "far": lambda m: (
        (m * np.abs(np.arange(14)[:, None] - np.arange(14))).sum(-1).mean()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(client: TestClient, name: str) -> None:
    view = view_of(TEXT, masked=[2])
    found = search(client, view, kind="pattern", name=name)
    assert found["found"]
    _, maps = maps_of(client, view)
    for (layer, head), score in by_head(found).items():
        expected = PATTERNS[name](maps[layer, head])
        assert score == pytest.approx(
            expected, abs=0.1 if "o" in name[:3] or name == "far" else 0.01
        )


def test_what_is_not_here_is_said(client: TestClient) -> None:
    for name, said in (("hidden", "Nothing is masked"), ("across", "no second text"),
                       ("again", "occurs twice"), ("punctuation", "no punctuation")):  # fmt: skip
        found = search(client, view_of("the dog"), kind="pattern", name=name)
        assert found["heads"] == []
        assert said in found["found"]
    pair = view_of("the dog", pair="it is")
    found = search(client, pair, kind="pattern", name="across")
    _, maps = maps_of(client, pair)
    expected = (maps[:, :, 1:3, 4:6].sum((-2, -1)) + maps[:, :, 4:6, 1:3].sum((-2, -1))) / 4
    assert by_head(found)[0, 0] == pytest.approx(expected[0, 0], abs=0.01)


def test_likeness(client: TestClient) -> None:
    found = search(client, view_of(), kind="similar", layer=1, head=2)
    assert (found["heads"][0]["layer"], found["heads"][0]["head"]) == (1, 2)
    assert found["heads"][0]["score"] == 1
    assert found["unit"] == "cosine"
    assert "layer 1, head 2" in found["found"]
    _, maps = maps_of(client, view_of())
    own, other = maps[1, 2].ravel(), maps[0, 3].ravel()
    cosine = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
    assert by_head(found)[0, 3] == pytest.approx(cosine, abs=0.01)


# The head to show first --------------------------------------------------------------------------


def test_a_head_that_only_looks_back_follows_no_grammar() -> None:
    """The subject stands right before the verb: the head that always looks back scores highest."""
    maps = np.full((1, 3, 6, 6), 0.02)
    maps[0, 0] += 0.9 * np.eye(6, k=-1)  # to the token before, everywhere
    maps[0, 1, 3, 2] = 0.8  # from the verb to its subject, and nowhere else
    maps[0, 2, :, 2] = 0.5  # to the subject, from everywhere
    links = [([3], [2])]
    assert int(attention_along(maps, links).argmax()) == 0
    beyond = attention_beyond_position(maps, links)
    assert int(beyond.argmax()) == 1
    assert beyond[0] == pytest.approx([0.0, 0.78, 0.48], abs=1e-9)
    alone = attention_beyond_position(maps[..., :2, :2], [([1], [0])])
    assert alone[0, 0] == pytest.approx(0.92), "nothing to compare with"


def test_the_best_head_and_where_its_link_begins(client: TestClient, asked: list[str]) -> None:
    found = search(client, view_of(TEXT), kind="relation", name="verb-subject")
    _, maps = maps_of(client, view_of(TEXT))
    beyond = attention_beyond_position(maps, [([3, 4], [2]), ([10], [9])])
    best = found["best"]
    assert np.unravel_index(int(beyond.argmax()), beyond.shape) == (best["layer"], best["head"])
    assert best["score"] == by_head(found)[best["layer"], best["head"]]
    assert best["beyond"] == pytest.approx(float(beyond.max()), abs=0.01)
    assert found["from"] == [3, 4]
    found = search(client, view_of(TEXT), kind="pattern", name="previous")
    assert {**found["heads"][0], "beyond": found["heads"][0]["score"]} == found["best"]


def test_the_bundled_model_opens_with_a_head_that_follows_grammar() -> None:
    """`bertology explore` begins here, and so do the tour and the teacher's page."""
    with asking(Encoder.load("bertology-mini", head="pretraining")) as client:
        text = client.get("/api/model").json()["examples"][0]["text"]
        subject = search(client, view_of(text), kind="relation", name="verb-subject")
        assert subject["found"].startswith("are → keys")
        assert (subject["best"]["layer"], subject["best"]["head"]) == (9, 2)
        assert subject["best"]["beyond"] > 0.8
        sink = search(client, view_of(text), kind="pattern", name="separator")["best"]
        assert sink["score"] > 0.8
        off = {"heads": [[9, 2]]}
        told = answer(client, "predict", view=view_of(text, masked=subject["from"], off=off))
        shares = [
            {p["token"]: p["probability"] for p in told[when]["masked"][0]["predictions"]}
            for when in ("before", "after")
        ]
        assert shares[0]["are"] > 0.3
        assert shares[1]["are"] < 0.1, "the last step of the tour"
