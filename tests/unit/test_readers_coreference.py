"""The readers of coreference: every format gives the same clusters of mentions, in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertology.data import Field, load_corpus
from bertology.data.corpus import Example
from bertology.data.readers.conllu import read_corefud
from bertology.data.readers.coreference import read_gap, read_winobias, read_wsc
from bertology.data.readers.ontonotes import read_conll
from bertology.errors import DataError

TASK = """\
#begin document (nw/x); part 000
nw/x 0 0 Jane NNP * - - - - * (3)|(7
nw/x 0 1 's POS * - - - - * -
nw/x 0 2 dog NN * - - - - * 7)
nw/x 0 3 ran VBD * - - - - * -
nw/x 0 4 -LRB- -LRB- * - - - - * -

nw/x 0 0 She PRP * - - - - * (3)
nw/x 0 1 called VBD * - - - - * -
nw/x 0 2 it PRP * - - - - * (7)

#end document
#begin document (nw/x); part 001
nw/x 1 0 Up RB * - - - - * -
#end document
"""
COLUMNS = """\
# begin document
0\tJane\t(person-3(animal-7
1\t's\tperson-3)
2\tdog\tanimal-7)
3\t\t_
4\tran\t_

"""
ENTITIES = """\
# newdoc id = one
# global.Entity = eid-etype
# sent_id = 1
# text = Jane saw it.
1\tJane\tJane\tPROPN\t_\t_\t2\tnsubj\t_\tEntity=(e1-person-1)
2\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_
3\tit\tit\tPRON\t_\t_\t2\tobj\t_\tEntity=(e2[1/2]-thing)|SpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\tEntity=(e2[2/2]-thing)

# sent_id = 2
# text = She ran
1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t_\tEntity=(e1-person-1)
2\tran\trun\tVERB\t_\t_\t0\troot\t_\t_

# newdoc id = two
# sent_id = 3
# text = Up
1\tUp\tup\tADV\t_\t_\t0\troot\t_\t_

"""
GAP = {
    "ID": "test-1", "Text": "Ann told Bea's boss that she won.", "Pronoun": "she",
    "Pronoun-offset": "25", "A": "Ann", "A-offset": "0", "A-coref": "TRUE", "B": "Bea",
    "B-offset": "9", "B-coref": "FALSE", "URL": "u",
}  # fmt: skip
SCHEMA = """\
<collection><schema><text><txt1>The cup did not fit in the old bag because</txt1><pron> it </pron>
<txt2>was too small.</txt2></text><answers><answer>The cup</answer><answer>the bag</answer>
</answers><correctAnswer> B. </correctAnswer></schema></collection>
"""


def spelled(example: Example) -> list[list[str]]:
    words = example.get("words")
    assert [example.text[a:b] for a, b in example.get("offsets")] == words
    return [[" ".join(words[a:b]) for a, b in of] for of in example.get("coreference")]


def write(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def test_columns_of_the_shared_task(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path / "x.v4_gold_conll", TASK))
    first, second = corpus
    assert (first.id, second.id) == ("nw/x/0", "nw/x/1")
    assert spelled(first) == [["Jane", "She"], ["Jane 's dog", "it"]]
    assert first.text == "Jane 's dog ran ( She called it"
    assert first.get("sentences") == [0, 5]
    assert first.get("pos")[:4] == ["PROPN", "PART", "NOUN", "VERB"]
    assert Field.POS in corpus.fields
    assert Field.SENTENCES not in corpus.fields  # the second part has one only
    assert second.get("coreference") == []


def test_three_columns_and_words_that_are_not_there(tmp_path: Path) -> None:
    (example,) = load_corpus(write(tmp_path / "x.conll", COLUMNS))
    assert spelled(example) == [["Jane 's"], ["Jane 's dog"]]
    assert example.get("words") == ["Jane", "'s", "dog", "ran"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0\tup", "line 1: 2 columns"),
        ("0\tup\t7)", "line 1: a mention of '7' ends here and begins nowhere"),
        ("0\tup\t(7", "line 1: a mention of '7' begins and never ends"),
        ("0\tup\t()", "does not tell where mentions begin"),
        ("0\t\t(7)", "line 1: the word is missing"),
    ],
)
def test_wrong_columns_are_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(").replace(")", r"\)")):
        read_conll(write(tmp_path / "x.conll", f"{line}\n"))


def test_entities_of_documents_with_their_trees(tmp_path: Path) -> None:
    path = write(tmp_path / "x.conllu", ENTITIES)
    one, two = load_corpus(path, reader="corefud")
    assert (one.id, two.id) == ("one", "two")
    assert spelled(one) == [["Jane", "She"], ["it"]]
    assert one.text == "Jane saw it. She ran"
    assert one.get("heads") == [1, -1, 1, 1, 5, -1]
    assert one.get("sentences") == [0, 4]
    assert len(load_corpus(path)) == 3, "sentence by sentence without the reader's name"
    bare = "\n".join(
        line.rsplit("\t", 1)[0] + "\t_" if "\t" in line else line for line in ENTITIES.split("\n")
    )
    with pytest.raises(DataError, match=r"annotates no coreference"):
        read_corefud(write(path, bare))
    with pytest.raises(DataError, match=r"sentence at line 10.*'e9' ends here"):
        read_corefud(
            write(path, ENTITIES.replace("Entity=(e1-person-1)\n2\tran", "Entity=e9)\n2\tran"))
        )
    with pytest.raises(DataError, match=r"does not tell where"):
        read_corefud(write(path, ENTITIES.replace("(e1-person-1)", "e1")))


def _gap(tmp_path: Path, **changed: str) -> Path:
    rows = [GAP.keys(), {**GAP, **changed}.values()]
    return write(tmp_path / "gap.tsv", "".join("\t".join(row) + "\n" for row in rows))


def test_gap(tmp_path: Path) -> None:
    (example,) = load_corpus(_gap(tmp_path), reader="gap")
    assert spelled(example) == [["Ann", "she"], ["Bea"]]
    assert (example.id, example.get("group")) == ("test-1", "feminine")
    (neither,) = read_gap(_gap(tmp_path, **{"A-coref": "FALSE"}))
    assert spelled(neither) == [["she"], ["Ann"], ["Bea"]]
    wrong = {"A-coref": "MAYBE", "A-offset": "x", "B-offset": "999", "Pronoun": "he", "A": " "}
    for name, value in wrong.items():
        with pytest.raises(DataError, match=r"gap\.tsv, line 2: "):
            read_gap(_gap(tmp_path, **{name: value}))
    with pytest.raises(DataError, match=r"is no GAP file"):
        read_gap(write(tmp_path / "x.tsv", "a\tb\n"))


def test_winobias(tmp_path: Path) -> None:
    line = "7 The CEO called [the construction worker] and told [him] that [he] was free.\n"
    path = write(tmp_path / "pro_stereotyped_type2.txt.dev", line)
    (example,) = load_corpus(path, reader="winobias")
    assert spelled(example) == [["the construction worker", "him", "he"], ["The CEO"]]
    assert example.get("group") == "pro_stereotyped_type2"
    for wrong in ("[The cook slept.", "The [cook]] slept.", "[The cook] slept.", "[] [a] [b]"):
        with pytest.raises(DataError, match=r"type2\.txt\.dev, line 1: "):
            read_winobias(write(path, wrong))


def test_winograd_schemas(tmp_path: Path) -> None:
    path = write(tmp_path / "WSCollection.xml", SCHEMA)
    (example,) = load_corpus(path, reader="wsc")
    assert example.text == "The cup did not fit in the old bag because it was too small."
    # The second answer is spelled without its article.
    assert spelled(example) == [["bag", "it"], ["The cup"]]
    wrong = {
        "no right one": SCHEMA.replace("B.", "C"), "no pronoun": SCHEMA.replace("pron>", "x>"),
        "not closed": SCHEMA[:-5], "entities": '<!DOCTYPE a [<!ENTITY b "c">]>' + SCHEMA,
    }  # fmt: skip
    for content in wrong.values():
        with pytest.raises(DataError, match=r"WSCollection\.xml"):
            read_wsc(write(path, content))


def _super_glue(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    return write(tmp_path / "val.jsonl", "\n".join(map(json.dumps, rows)))


def test_super_glues_rows_of_one_pronoun_are_one_example(tmp_path: Path) -> None:
    text = "Mr. Smith saw Ann, but he left."
    he = {"span2_index": 5, "span2_text": "he"}
    right = {"text": text, "target": {"span1_index": 0, "span1_text": "Mr. Smith", **he},
             "label": True}  # fmt: skip
    wrong = {"text": text, "target": {"span1_index": 3, "span1_text": "Ann", **he}, "label": False}
    (example,) = read_wsc(_super_glue(tmp_path, right, wrong))
    assert spelled(example) == [["Mr. Smith", "he"], ["Ann"]]
    spoilt: list[dict[str, Any]] = [
        {**right, "label": None}, {**right, "text": 1}, {**right, "target": []},
        {**right, "target": {**right["target"], "span1_index": 99}},
        {**right, "target": {**right["target"], "span2_text": 5}},
    ]  # fmt: skip
    for row in spoilt:
        with pytest.raises(DataError, match=r"val\.jsonl, line 1: "):
            read_wsc(_super_glue(tmp_path, row))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[[0, 9]]], "coreference names the word 8, and there are 3 words"),
        ([[[1, 1]]], r"the mention \[1, 1\] has no words"),
        ([[0, 1]], "must be a list of clusters"),
    ],
)
def test_own_clusters_are_checked_where_they_are_read(
    tmp_path: Path, given: object, message: str
) -> None:
    row = {"text": "a b c", "words": ["a", "b", "c"], "coreference": given}
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path / "own.jsonl", json.dumps(row)))
