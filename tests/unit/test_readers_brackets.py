"""Trees in brackets: words, phrases, what is not pronounced, and malformed files."""

from __future__ import annotations

import random
from pathlib import Path

import nltk
import pytest

from bertology.data import Field, load_corpus
from bertology.errors import DataError

GOOD = r"""
( (S
    (NP-SBJ-1 (NNP Ann) (POS 's) (NN dog) )
    (VP (VBZ is) (RB n't)
      (VP (VBN seen)
        (NP (-NONE- *-1) )
        (PP (IN by) (NP (NNS cats)))))
    (: --) (`` ``) (NP=2 (CD 1\/2)) ('' '') (-LRB- -LRB-) (NN \*) (-RRB- -RRB-) (. .) ))
(TOP (FRAG (UH Yes) (. !)))
( (S (NP-SBJ (-NONE- *)) ) )
"""


def write(folder: Path, content: str, name: str = "x.mrg") -> Path:
    file = folder / name
    file.write_text(content, encoding="utf-8", newline="")
    return file


def test_words_and_phrases(tmp_path: Path) -> None:
    first, second = load_corpus(write(tmp_path, GOOD))
    assert first.id == "x-0"
    assert first.text == r"""Ann's dog isn't seen by cats -- "1/2" (\*)."""
    assert [first.text[a:b] for a, b in first.get("offsets")] == first.get("words")
    assert first.get("words")[:5] == ["Ann", "'s", "dog", "is", "n't"]
    assert first.get("tags")[:3] == ["NNP", "POS", "NN"]
    spelled = {(" ".join(first.get("words")[a:b]), label) for a, b, label in
               first.get("constituents")}  # fmt: skip
    assert spelled >= {("Ann 's dog", "NP"), ("is n't seen by cats", "VP"), ("seen by cats", "VP"),
                       ("by cats", "PP"), ("cats", "NP"), ("1/2", "NP")}  # fmt: skip
    assert [list(p)[2] for p in second.get("constituents")] == ["FRAG", "TOP"]


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    for name in ("b.mrg", "a.mrg"):
        write(tmp_path, GOOD, name)
    corpus = load_corpus(tmp_path, reader="brackets")
    assert [e.id for e in corpus] == ["a-0", "a-1", "b-0", "b-1"]
    assert Field.CONSTITUENTS in corpus.fields
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no files that end in \.mrg"):
        load_corpus(tmp_path / "empty", reader="brackets")


def _drawn(rng: random.Random, depth: int = 0) -> str:
    if depth > 4 or rng.random() < 0.3:
        return rng.choice(["(N dog)", "(V bark)", "(-NONE- *T*)", "(D the)"])
    inner = " ".join(_drawn(rng, depth + 1) for _ in range(rng.randrange(1, 4)))
    return f"({rng.choice(['S', 'NP-SBJ', 'VP=1'])} {inner})"


def test_as_nltk_reads_them(tmp_path: Path) -> None:
    """Another parser gives the same words, and the same phrases once silent words are cut."""
    rng = random.Random(0)
    texts = [f"(S {_drawn(rng)} (N end))" for _ in range(60)]
    corpus = load_corpus(write(tmp_path, "\n".join(texts)))
    assert len(corpus) == len(texts)
    for text, example in zip(texts, corpus, strict=True):
        tree = nltk.Tree.fromstring(text)
        at = [i for i, (_, tag) in enumerate(tree.pos()) if tag != "-NONE-"]
        assert example.get("words") == [tree.leaves()[i] for i in at]
        expected = set()
        for position in tree.treepositions():
            node = tree[position]
            if isinstance(node, nltk.Tree) and isinstance(node[0], nltk.Tree):
                inside = [k for k, leaf in enumerate(tree.treepositions("leaves"))
                          if leaf[: len(position)] == position and k in at]  # fmt: skip
                if inside:
                    label = node.label().split("-")[0].split("=")[0]
                    expected.add((at.index(inside[0]), at.index(inside[-1]) + 1, label))
        assert {tuple(p) for p in example.get("constituents")} == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("(S (N a)", "the bracket of line 1 is not closed"),
        ("(S (N a))\n)", "line 2: '\\)' stands outside of all brackets"),
        ("the cat", "'the' stands outside of all brackets"),
        ("(S ())", "neither a word nor phrases"),
        ("(S)", "neither a word nor phrases"),
        ("(N a (N b))", "a word and a phrase share a bracket"),
        ("(S (N a) b)", "'b' comes after the word or the phrases"),
        ("(N a b)", "'b' comes after the word or the phrases"),
        ("( (S (-NONE- *)) )", "no examples"),
        ("  \n", "is empty"),
        ("(A " * 100_000, "not closed"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, content))
