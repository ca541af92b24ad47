"""Chunks, entities, roles, proto-roles and relations: what is read, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.data.readers.bio import marked_spans
from bertology.errors import DataError

CHUNKED = "He PRP B-NP\nsaw VBD B-VP\nold JJ B-NP\ndogs NNS I-NP\n. . O\n\nGo VB B-VP\n"
IOB1 = "Ann I-PER\nmet O\nBob I-PER\nLee I-PER\nJoe B-PER\n"
BIOES = "Ann S-PER\nmet O\nBob B-PER\nde I-PER\nLee E-PER\nParis S-LOC\n"
ROW = "{}\t{}\t{}\t{}\t_\t_\t{}\t{}\t_\t_\t{}\n"
PROPOSED = "# text = Dogs want to bark\n" + "".join(
    ROW.format(*row)
    for row in (
        (1, "Dogs", "dog", "NOUN", 2, "nsubj", "_\tARG0\tARG0"),
        (2, "want", "want", "VERB", 0, "root", "want.01\tV\t_"),
        (3, "to", "to", "PART", 4, "mark", "_\t_\t_"),
        (4, "bark", "bark", "VERB", 2, "xcomp", "bark.01\tARG1\tV"),
    )
)
ENTITIES = "# global.Entity = GRP-etype-infstat\n# text = Ann saw Rome\n" + "".join(
    f"{i}\t{w}\t{w}\t{pos}\t{tag}\t_\t{head}\t{rel}\t_\t{misc}\n"
    for i, w, pos, tag, head, rel, misc in (
        (1, "Ann", "PROPN", "NNP", 2, "nsubj", "Entity=(1-person-new)"),
        (2, "saw", "VERB", "VBD", 0, "root", "_"),
        (3, "Rome", "PROPN", "NNP", 2, "obj", "Entity=(2-place-new)(3[2/2]-place-new)"),
    )
)
RELATED = (
    '8\t"<e1>People</e1> have moved into <e2>the town</e2>."\nEntity-Destination(e1,e2)\nComment:\n'
)
ONTONOTES = """#begin document (nw/x); part 000
nw/x 0 0 Ann NNP (TOP(S(NP*) - - - - (PERSON) (ARG0*) * (1)
nw/x 0 1 saw VBD (VP* see 01 1 - * (V*) * -
nw/x 0 2 her PRP$ (NP* - - - - * (ARG1* * (2|(1)
nw/x 0 3 dog NN *) - - - - * *) (ARG0*) 2)
nw/x 0 4 bark VB (S(VP*))) bark 01 1 - * (ARGM-PRD*) (V*) -
nw/x 0 5 -RRB- -RRB- *)) - - - - * * * -

#end document
"""


def write(folder: Path, content: str, name: str) -> Path:
    file = folder / name
    file.write_text(content, encoding="utf-8")
    return file


def test_chunks_in_columns(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path, CHUNKED, "a.txt"), reader="bio")
    assert corpus.fields >= {Field.CHUNKS, Field.TAGS, Field.WORDS, Field.OFFSETS}
    assert corpus[0].text == "He saw old dogs ."
    assert corpus[0].get("chunks") == [[0, 1, "NP"], [1, 2, "VP"], [2, 4, "NP"]]
    assert [e.id for e in corpus] == ["a-0", "a-1"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (IOB1, [[0, 1, "PER"], [2, 4, "PER"], [4, 5, "PER"]]),
        (BIOES, [[0, 1, "PER"], [2, 5, "PER"], [5, 6, "LOC"]]),
        ("-DOCSTART- O\n\nRome B-LOC\n", [[0, 1, "LOC"]]),
        ("a U-X\nb B-X\nc L-X\nd I-Y\n", [[0, 1, "X"], [1, 3, "X"], [3, 4, "Y"]]),
    ],
)
def test_entities_in_all_schemes(tmp_path: Path, content: str, found: list[list[object]]) -> None:
    (example,) = load_corpus(write(tmp_path, content, "a.txt"), reader="bio")
    assert example.get("entities") == found


def test_spans_as_seqeval_has_them() -> None:
    """Brute force over all short sequences: a span begins and ends as conlleval says."""
    from itertools import product

    tags = ("O", "B-A", "I-A", "B-B", "I-B")
    for row in product(tags, repeat=4):
        found = marked_spans([("", tag) for tag in row])
        covered = {i for a, b, _ in found for i in range(int(a), int(b))}
        assert covered == {i for i, tag in enumerate(row) if tag != "O"}
        starts = {
            i
            for i, tag in enumerate(row)
            if tag[0] == "B"
            or (tag[0] == "I" and (i == 0 or row[i - 1] == "O" or row[i - 1][2:] != tag[2:]))
        }
        assert {a for a, _, _ in found} == starts


def test_columns_may_be_named(tmp_path: Path) -> None:
    file = write(tmp_path, "x De DT O\ny Rome NNP B-LOC\n", "a.txt")
    (example,) = load_corpus(file, reader="bio", words="1", tags="2", entities="3")
    assert (example.get("words"), example.get("entities")) == (["De", "Rome"], [[1, 2, "LOC"]])
    with pytest.raises(DataError, match="entities=9 is no column; it has 4"):
        load_corpus(file, reader="bio", words="1", entities="9")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a NN B-NP\nb NN\n", "line 2: 2 columns where line 1 has 3"),
        ("a NN B-NP\nb NN NP\n", "line 2: 'NP' does not say"),
        ("a\nb\n", "has 1 columns"),
    ],
)
def test_columns_that_are_not_right(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        load_corpus(write(tmp_path, content, "a.txt"), reader="bio")


def test_roles_of_predicates(tmp_path: Path) -> None:
    (example,) = load_corpus(write(tmp_path, PROPOSED, "a.conllu"), reader="propbank")
    assert example.get("arguments") == [
        [1, 2, 0, 1, "ARG0"],
        [1, 2, 3, 4, "ARG1"],
        [3, 4, 0, 1, "ARG0"],
    ]
    assert example.get("heads") == [1, -1, 3, 1]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("_\tARG0\tARG0", "_\tARG0", "line 2: 1 columns of roles, and the sentence has 2"),
        ("bark.01\tARG1\tV", "bark.01\tV\tARG1", "line 5: the predicate has 'ARG1'"),
        ("want.01\tV\t_", "want.01\t_\t_", "line 3: the predicate has '_' in its own column"),
    ],
)
def test_roles_that_are_not_aligned(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = write(tmp_path, PROPOSED.replace(old, new), "a.conllu")
    with pytest.raises(DataError, match=says):
        load_corpus(file, reader="propbank")


def test_entities_and_tags_of_universal_dependencies(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path, ENTITIES, "a.conllu"))
    assert corpus[0].get("entities") == [[0, 1, "person"], [2, 3, "place"]]
    assert corpus[0].get("tags") == ["NNP", "VBD", "NNP"]
    plain = load_corpus(write(tmp_path, ENTITIES.replace("etype", "head"), "b.conllu"))
    assert Field.ENTITIES not in plain.fields


def test_relations_between_entities(tmp_path: Path) -> None:
    (example,) = load_corpus(write(tmp_path, RELATED, "a.txt"), reader="semeval-relations")
    assert example.text == "People have moved into the town."
    assert example.get("entity_relations") == [[0, 1, 4, 6, "Entity-Destination(e1,e2)"]]
    for old, new, says in (
        ("</e2>", "", "line 1: the sentence must have <e1>"),
        ("Entity-D", "entity d", "line 2: 'entity destination"),
        ("8\t", "", "line 1: this is no sentence with a number"),
    ):
        with pytest.raises(DataError, match=says):
            load_corpus(
                write(tmp_path, RELATED.replace(old, new), "b.txt"), reader="semeval-relations"
            )


def test_ontonotes_sentence_by_sentence(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path, ONTONOTES, "a.v4_gold_conll"), reader="ontonotes")
    (example,) = corpus
    assert example.get("words")[-1] == ")"
    assert [0, 1, "PERSON"] in example.get("entities")
    phrases = {tuple(phrase) for phrase in example.get("constituents")}
    assert phrases >= {(0, 1, "NP"), (0, 6, "S"), (1, 5, "VP"), (2, 4, "NP")}
    assert example.get("arguments") == [
        [1, 2, 0, 1, "ARG0"],
        [1, 2, 2, 4, "ARG1"],
        [1, 2, 4, 5, "ARGM-PRD"],
        [4, 5, 3, 4, "ARG0"],
    ]
    assert example.get("coreference") == [[(0, 1), (2, 3)], [(2, 4)]]
    assert corpus.fields >= {Field.TAGS, Field.POS, Field.ARGUMENTS, Field.COREFERENCE}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("(ARG0*) * (1)", "(ARG0*) (1)", "columns, not"),
        ("*)) - -", "*))) - -", "line 7: .* ends a phrase that began nowhere"),
        ("(NP* - -", "(NP - x) - -", "does not tell where|columns"),
        (" (V*) * -", " * * -", "column 12 of the sentence marks 0 predicates"),
        ("*) (ARG0*) 2)", "* (ARG0*) 2)", "begins inside 'ARG1'"),
        ("dog NN *) - - - - *", "dog NN *) - - - - (ORG", "'ORG' begins and never ends"),
    ],
)
def test_ontonotes_that_is_not_right(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = write(tmp_path, ONTONOTES.replace(old, new, 1), "a.v4_gold_conll")
    with pytest.raises(DataError, match=says):
        load_corpus(file, reader="ontonotes")


HEADER = "Split\tSentence.ID\tPred.Token\tProperty\tResponse\tApplicable\t"
TREE = "( (S (NP-SBJ (NNS Dogs)) (VP (VBP see) (NP (-NONE- *T*)) (NP (JJ old) (NNS cats))) (. .)))"


def judged(folder: Path, more: str, *rows: str) -> Path:
    write(folder, HEADER + more + "\n" + "\n".join(rows) + "\n", "judgements.tsv")
    return folder


def test_proto_roles_of_words(tmp_path: Path) -> None:
    write(tmp_path, "Sentence.ID\ttokens\ns 1\tDogs see old cats .\n", "sentences.tsv")
    rows = [
        "train\ts 1\t1\tsentient\t5\tyes\t2\t3",
        "train\ts 1\t1\tsentient\t4\tyes\t2\t3",
        "train\ts 1\t1\tcreated\t5\tyes\t2\t3",
        "train\ts 1\t1\tcreated\t5\tno\t2\t3",
        "dev\ts 1\t1\tsentient\tnan\tyes\t0\t0",
        "dev\ts 1\t1\tcreated\t1\tyes\t0\t0",
    ]
    folder = judged(tmp_path, "Arg.Tokens.Begin\tArg.Tokens.End", *rows)
    (train,) = load_corpus(folder, split="train", reader="proto-roles")
    assert train.get("proto_roles") == [[1, 2, 2, 4, {"created": False, "sentient": True}]]
    (both,) = load_corpus(folder, split="all", reader="proto-roles")
    assert both.get("proto_roles")[1] == [1, 2, 0, 1, {"created": False}]
    rows[0] = rows[0].replace("\t2\t3", "\t2\t9")
    with pytest.raises(DataError, match="proto_roles names the word 9, and there are 5 words"):
        load_corpus(judged(tmp_path, "Arg.Tokens.Begin\tArg.Tokens.End", *rows), split="all",
                    reader="proto-roles")  # fmt: skip
    rows[0] = rows[1].replace("s 1", "s 2")
    with pytest.raises(DataError, match="no sentence 's 2'"):
        load_corpus(judged(tmp_path, "Arg.Tokens.Begin\tArg.Tokens.End", *rows), split="all",
                    reader="proto-roles")  # fmt: skip


def test_proto_roles_of_trees(tmp_path: Path) -> None:
    trees, folder = tmp_path / "trees", tmp_path / "spr"
    trees.mkdir()
    folder.mkdir()
    write(trees, TREE, "wsj_0001.mrg")
    row = "train\t0001_0\t1\tsentient\t5\tTrue\t3:1"
    judged(folder, "Arg.Pos", row)
    (example,) = load_corpus(folder, split="all", reader="proto-roles", treebank="../trees")
    # The trace is counted in the judgements and has no word.
    assert example.get("proto_roles") == [[1, 2, 2, 4, {"sentient": True}]]
    for place, says in (("2:0", "nothing is pronounced"), ("9:0", "no bracket '9:0'")):
        judged(folder, "Arg.Pos", row.replace("3:1", place))
        with pytest.raises(DataError, match=f"line 2: .*{says}"):
            load_corpus(folder, split="all", reader="proto-roles", treebank="../trees")
    with pytest.raises(DataError, match="no folder"):
        load_corpus(folder, split="all", reader="proto-roles", treebank="elsewhere")
