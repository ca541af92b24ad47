"""Links that a corpus brings itself: what is read, what is refused, and that the how-to works."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bertology as bt
import planted_links
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.links import check_relation, links_of
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.stats.best_of_many import leading
from bertology.studies.attention.relation_heads import RelationHeads, RelationHeadsResult
from printed import commands, printed, run

PAGE = "docs/how-to/own-relation.md"
WORDS = ["rain", "fell", "so", "roads", "closed"]


def write(folder: Path, links: object) -> Path:
    path = folder / "own.jsonl"
    path.write_text(json.dumps({"words": WORDS, "links": links}) + "\n", encoding="utf-8")
    return path


def test_links_of_a_file_are_read(tmp_path: Path) -> None:
    corpus = bt.load_corpus(str(write(tmp_path, [[4, 1, "cause"], [3, [0, 1]], [4, 0, "cause"]])))
    example = corpus[0]
    assert Field.LINKS in corpus.fields
    ends = [(link.source, link.target) for link in links_of(example, "links")]
    assert ends == [((3,), (0, 1)), ((4,), (0,)), ((4,), (1,))]  # several from one word
    assert [link.target for link in links_of(example, "links:cause")] == [(0,), (1,)]
    assert links_of(example, "links:effect") == []
    with pytest.raises(CapabilityError, match="needs links"):
        check_relation("links", Corpus("none", [Example("1", "a")], frozenset({Field.TEXT})))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([[4, 9]], "the word 9, and there are 5 words"),
        ([[4]], "is not a link"),
        ([["closed", "fell"]], "is not a link"),
        ([[4, []]], "is not a link"),
        ([[-1, 2]], "the word -1"),
    ],
)
def test_what_is_no_link_is_refused(links: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        bt.load_corpus(str(write(tmp_path, links)))


def test_own_links_have_no_limits_unless_they_are_set() -> None:
    own, usual = RelationHeads(relation="links").limits, RelationHeads(relation="nsubj").limits
    assert (own.max_tokens, own.max_element, own.min_distance, own.every) == (0, 0, 1, False)
    assert (usual.max_tokens, usual.max_element, usual.min_distance) == (12, 3, 2)
    assert RelationHeads(relation="links", max_tokens=30).limits.max_tokens == 30


def test_the_head_that_follows_them_is_first_and_surely_so() -> None:
    """From verbs to subjects, in texts of any length; the same links as the planted head's."""
    examples = []
    for i, example in enumerate(planted_links.corpus(60)):
        words, more = [*["now"] * (i % 4 + 10), *example.get("words")], i % 4 + 10
        verb = example.get("pos").index("VERB") + more
        noun = example.get("pos").index("NOUN") + more
        text = "now " * more + example.text
        examples.append(
            Example(example.id, text, annotations={"words": words, "links": [[verb, noun]]})
        )
    corpus = Corpus("own", examples, frozenset({Field.TEXT, Field.WORDS, Field.LINKS}))
    encoder = Encoder(planted_links.model(planted_links.LINK), planted_links.tokenizer())
    study = RelationHeads(relation="links", direction="forward")
    result = planted_links.ask(study, encoder, corpus)
    first = result.shown("heads").iloc[0]
    assert (first["layer"], first["head"]) == planted_links.LINK
    assert first["accuracy"] > 0.9
    others = result.table("heads")["behind_first_p"].dropna()
    assert (others < 0.05).all()
    assert "surely more than the next" in result.headline()
    assert "not surely" not in result.headline()


@pytest.mark.parametrize(("links", "end"), [([1, 0], "start from"), ([0, 1], "end in")])
def test_links_of_one_word_are_refused_before_any_work(links: list[int], end: str) -> None:
    """They ended in a message about shapes of arrays, after the whole run."""
    examples = [
        Example(str(i), text, annotations={"words": text.split(), "links": [links]})
        for i, text in enumerate(["Anna sees it", "Tom sees it", "Paul sees it"])
    ]
    corpus = Corpus("one", examples, frozenset({Field.TEXT, Field.WORDS, Field.LINKS}))
    encoder = Encoder(planted_links.model(planted_links.LINK), planted_links.tokenizer())
    with pytest.raises(DataError, match=f"(?s){end} the same word, 'sees'.*syntax-heads"):
        RelationHeads(relation="links").check(encoder, corpus)


def test_too_few_words_are_named_as_the_reason() -> None:
    """Six words can never make one of 144 heads sure, whatever heads do."""
    heads = RelationHeads()._heads(
        *2 * [np.random.default_rng(0).random((12, 5, 12, 12))],
        np.array([[f"a{i % 6}", f"b{i}"] for i in range(12)]),
    )
    assert not heads["sure"].any()
    facts = {"level": 0.95}
    result = RelationHeadsResult(
        Provenance("relation-heads", 4, {}, {"fingerprint": "m"}, None),
        {"heads": heads},
        xr.Dataset(attrs=facts),
    )
    assert result._none_is_sure().startswith("none could be (6 different words")
    assert "takes 13 or more" in result._none_is_sure()


def test_the_best_of_equals_is_seldom_surely_better() -> None:
    rng, false = np.random.default_rng(0), 0
    for _ in range(100):
        found = leading((rng.random((30, 60)) < 0.5).astype(float))
        false += bool(np.nanmax(found.p_adjusted) < 0.05)
    assert false == 0
    assert leading(np.array([[0.0, 1, 0], [1, 1, 1.0]])).best == 1
    three = leading(np.array([[1.0, 1, 1], [0, 0, 0]]))  # three tosses of a coin can all agree
    assert three.p_adjusted[1] == pytest.approx(0.25)


def test_the_how_to_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(printed(PAGE, "python")), PAGE, "exec"), {})
    (command,) = commands(PAGE)
    assert "links:who: 80 sentences" in run(command).said
