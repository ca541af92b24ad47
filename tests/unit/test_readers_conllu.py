"""CoNLL-U: multiword tokens, empty nodes, offsets, and malformed files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.errors import DataError

GOOD = """\
# sent_id = one
# text = I don't like dogs.
1\tI\tI\tPRON\tPRP\tNumber=Sing\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\tPolarity=Neg\t4\tadvmod\t_\t_
4\tlike\tlike\tVERB\tVB\tVerbForm=Inf\t0\troot\t_\t_
4.1\tlike\tlike\tVERB\tVB\t_\t_\t_\t0:root\t_
5\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t4\tobj\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# text = Le chat du  chat
1\tLe\tle\tDET\t_\t_\t2\tdet\t_\t_
2\tchat\tchat\tNOUN\t_\t_\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_
5\tchat\tchat\tNOUN\t_\t_\t2\tnmod\t_\t_
"""


def write(folder: Path, content: str) -> Path:
    file = folder / "x.conllu"
    file.write_text(content, encoding="utf-8", newline="")
    return file


def test_words_and_their_places(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path, GOOD))
    first, second = corpus
    assert first.id == "one"
    assert first.text == "I don't like dogs."
    assert first.get("words") == ["I", "do", "n't", "like", "dogs", "."]
    assert [first.text[a:b] for a, b in first.get("offsets")] == first.get("words")
    assert first.get("heads") == [3, 3, 3, -1, 3, 3]
    assert first.get("relations")[0] == "nsubj"
    assert (first.get("subject"), first.get("verb"), first.get("object")) == (0, 3, 4)
    assert first.get("negation") == [2]
    assert first.get("number") == "singular"
    # `du` spells neither of its words: both stand where it stands; the second `chat` is its own.
    assert second.text == "Le chat du  chat"
    assert second.get("offsets") == [(0, 2), (3, 7), (8, 10), (8, 10), (12, 16)]
    assert {Field.WORDS, Field.HEADS, Field.OFFSETS} <= corpus.fields


def test_without_comments(tmp_path: Path) -> None:
    row = "1\tHi\thi\tINTJ\t_\t_\t0\troot\t_\tSpaceAfter=No\n2\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\t_\n"
    example = load_corpus(write(tmp_path, row))[0]
    assert (example.id, example.text, example.get("verb")) == ("0", "Hi!", None)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("4\tlike\tlike\tVERB\tVB\t", "4\tlike\tlike\tVERB\t", "line 7: 9 columns"),
        ("4\tnsubj", "x\tnsubj", "sentence at line 1: not CoNLL-U"),
        ("4\tnsubj", "9\tnsubj", "has the head 9"),
        ("4\tnsubj", "_\tnsubj", "has the head None"),
        ("5\tdogs", "7\tdogs", "not numbered"),
        ("# text = I don't", "# text = You don't", "do not spell"),
        ("2-3\tdon't", "2--3\tdon't", "not CoNLL-U"),
    ],
)
def test_malformed(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(DataError) as error:
        load_corpus(write(tmp_path, GOOD.replace(old, new, 1)))
    assert said in str(error.value)
    assert "x.conllu" in str(error.value)


def test_comments_alone(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sentence at line 1: there are no words"):
        load_corpus(write(tmp_path, "# text = nothing\n\n"))
