"""Senses, targets and similarities of words: what is read, and files that are wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bertology.data import Example, Field, load_corpus
from bertology.data.readers.annotations import check_annotations
from bertology.data.words.inflections import find_word
from bertology.data.words.piece_words import known_words
from bertology.errors import DataError
from hostile import spoilt_bytes

SENSED = {
    "text": "The bank of the Rhine.",
    "words": ["The", "bank", "of", "the", "Rhine", "."],
    "senses": [[1, 2, "bank.n", "river"]],
}
PAIRED = {"text": "A bat flew.", "text_b": "He swung his bat.", "label": "no"}


def write(folder: Path, content: str, name: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return file


def lines(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_senses_and_targets_of_your_own(tmp_path: Path) -> None:
    (sensed,) = load_corpus(write(tmp_path, lines(SENSED), "a.jsonl"))
    assert sensed.get("senses") == [[1, 2, "bank.n", "river"]]
    rows = [{**PAIRED, "targets": [[1, 2], [3, 4]]}] * 2
    corpus = load_corpus(write(tmp_path, lines(*rows), "b.jsonl"))
    assert Field.TARGETS in corpus.fields
    assert corpus[0].get("targets") == [[1, 2], [3, 4]]


def test_senses_and_targets_in_cells(tmp_path: Path) -> None:
    table = 'text\twords\tsenses\nIt rang .\tIt rang .\t[[1, 2, "ring.v", "sound"]]\n'
    (sensed,) = load_corpus(write(tmp_path, table, "a.tsv"))
    assert sensed.get("senses") == [[1, 2, "ring.v", "sound"]]
    table = 'text,text_b,score,targets\nA bat.,My bat.,2.5,"[[1, 2], [1, 2]]"\n'
    (pair,) = load_corpus(write(tmp_path, table, "b.csv"))
    assert (pair.label, pair.get("targets")) == (2.5, [[1, 2], [1, 2]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (SENSED | {"senses": [[1, 1, "bank.n", "river"]]}, "a word at least"),
        (SENSED | {"senses": [[1, 2, "bank.n"]]}, "lemma, sense"),
        (SENSED | {"senses": [[1, 2, "bank.n", 3]]}, "lemma, sense"),
        (SENSED | {"senses": [[5, 7, "bank.n", "river"]]}, "senses names the word 6"),
        (SENSED | {"targets": [[1, 2], [2, 3]]}, "2 targets for 1 texts"),
        (PAIRED | {"targets": [[1, 2]]}, "1 targets for 2 texts"),
        (PAIRED | {"targets": [[1, 2], [3, 5]]}, "outside text 2, which has 4 words"),
        (PAIRED | {"targets": [[1, 2], [2, 2]]}, "a word at least"),
        (PAIRED | {"targets": [1, 2]}, "one for each text"),
        (PAIRED | {"targets": [[1, 2], [1, 2]], "words": ["A"]}, "no offsets"),
    ],
)
def test_wrong_senses_and_targets(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, lines(row), "a.jsonl"))


def test_cells_that_are_no_spans(tmp_path: Path) -> None:
    table = "text\ttext_b\ttargets\nA bat\tMy bat\t1 2 1 2\n"
    with pytest.raises(DataError, match=r"a.tsv, line 2: targets must be written as in JSON"):
        load_corpus(write(tmp_path, table, "a.tsv"))


SEMCOR = """<contextfile concordance="brown">
<context filename="br-a01" paras="yes">
<p pnum="1">
<s snum="1">
<wf cmd="done" rdf="group" lemma="group" wnsn="1" lexsn="1:03:00::" pn="group">Grand_Jury</wf>
<wf cmd="done" pos="VB" lemma="say" wnsn="1" lexsn="2:32:00::">said</wf>
<punc>``</punc>
<wf cmd="done" pos="NN" lemma="year" wnsn="2;1" lexsn="1:28:02::;1:28:01::">years</wf>
<wf cmd="done" pos="VB" lemma="take_place" wnsn="1" lexsn="2:30:00::">took_place</wf>
<punc>''</punc>
<wf cmd="ignore" pos="TO">_to</wf>
<punc>&amp;</punc>
<wf cmd=done pos=JJ lemma=recent wnsn=2 lexsn=5:00:00:past:00>recent</wf>
<punc>.</punc>
</s>
<s snum="2">
</s>
</p>
</context>
</contextfile>
"""


def test_semcor(tmp_path: Path) -> None:
    (one,) = load_corpus(write(tmp_path, SEMCOR, "br-a01"), reader="semcor")
    assert one.text == 'Grand Jury said "years took place" to & recent.'
    words = one.get("words")
    assert [one.text[a:b] for a, b in one.get("offsets")] == words
    assert [(words[a:b], *rest) for a, b, *rest in one.get("senses")] == [
        (["said"], "say.v", "say%2:32:00::"),
        (["years"], "year.n", "year%1:28:02::"),
        (["took", "place"], "take_place.v", "take_place%2:30:00::"),
        (["recent"], "recent.a", "recent%5:00:00:past:00"),
    ]
    assert (one.id, one.get("group")) == ("br-a01-0", "br-a01")


def test_documents_of_semcor_are_held_out(tmp_path: Path) -> None:
    for i in range(20):
        write(tmp_path, SEMCOR, f"br-{i}")
    write(tmp_path, "", "br-empty")
    parts = {s: load_corpus(tmp_path, reader="semcor", split=s) for s in ("train", "test", "all")}
    groups = {s: {e.get("group") for e in part} for s, part in parts.items()}
    assert not groups["train"] & groups["test"]
    assert groups["train"] | groups["test"] == groups["all"]
    assert len(groups["all"]) == 20
    assert 1 <= len(groups["test"]) < len(groups["train"])
    (tmp_path / "br-0").unlink()
    again = {e.get("group") for e in load_corpus(tmp_path, reader="semcor", split="test")}
    assert again == groups["test"] - {"br-0"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</s>\n<s", "<s", "line 15: a sentence begins inside the one of line 4"),
        ('<s snum="1">\n', "", "line 4: a word stands outside"),
        ("<punc>.</punc>\n</s>", "</s>\n</s>", "line 15: a sentence ends here"),
        ("lexsn=5:00:00:past:00", "lexsn=past", "no sense of WordNet"),
        ("<punc>.</punc>", "<punc>.", "no line of SemCor"),
        ("<punc>.</punc>", "<punc>_</punc>", "line 14: the word is empty"),
        ("</s>\n</p>\n</context>\n</contextfile>", "", "the sentence of line 16 never ends"),
        (SEMCOR, "<contextfile>\n", "has no sentence"),
        (SEMCOR, "", "is empty"),
    ],
)
def test_wrong_semcor(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, SEMCOR.replace(old, new), "a"), reader="semcor")


GLUED = {
    "word": "bed", "sentence1": "A bed.", "sentence2": "Two (big) beds!", "start1": 2, "end1": 5,
    "start2": 10, "end2": 14, "label": True,
}  # fmt: skip
PROMPT = "Word: go. Sentence 1: How fast does it go ? Sentence 2: He did n't say , he went ."


def targets(example: Example) -> list[list[str]]:
    found = zip(example.texts, known_words(example), example.get("targets"), strict=True)
    return [[text[a:b] for a, b in spans[slice(*target)]] for text, spans, target in found]


def test_wic_by_characters(tmp_path: Path) -> None:
    rows = lines(GLUED, GLUED | {"label": False})
    corpus = load_corpus(write(tmp_path, rows, "a.jsonl"), reader="wic")
    assert corpus.labels == [1, 0]
    assert corpus.task is not None
    assert corpus.task.labels == ("false", "true")
    assert targets(corpus[0]) == [["bed"], ["beds"]]
    assert corpus[0].get("targets") == [[1, 2], [4, 5]]
    assert corpus[0].get("words") == ["A", "bed", ".", "Two", "(", "big", ")", "beds", "!"]
    assert corpus[0].get("group") == "bed"
    hidden = lines({k: v for k, v in GLUED.items() if k != "label"})
    corpus = load_corpus(write(tmp_path, hidden, "b.jsonl"), reader="wic")
    assert Field.LABEL not in corpus.fields


def test_wic_by_forms(tmp_path: Path) -> None:
    row = {"label": 0, "text": PROMPT}
    (one,) = load_corpus(write(tmp_path, lines(row), "a.jsonl"), reader="wic")
    assert one.texts == ("How fast does it go?", "He didn't say, he went.")
    assert (targets(one), one.label) == ([["go"], ["went"]], 0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (GLUED | {"end1": 60}, "start1 and end1 must be"),
        (GLUED | {"start2": "0"}, "start2 and end2 must be"),
        (GLUED | {"start1": 5}, "start1 and end1 must be"),
        (GLUED | {"start1": 1, "end1": 2}, "no word at the characters"),
        (GLUED | {"label": "perhaps"}, "outside the classes"),
        (GLUED | {"sentence2": ""}, "there is no sentence2"),
        (GLUED | {"word": None}, "there is no word"),
        ({"label": 1, "text": "Word: go."}, "Expected"),
        ({"label": 1, "text": 7}, "the text is 7"),
        ({"label": 1, "text": PROMPT.replace("went", "came")}, "'go' is found in sentence 2"),
        ({"text": PROMPT}, ""),
    ],
)
def test_wrong_wic(tmp_path: Path, row: dict[str, object], message: str) -> None:
    rows = lines(GLUED, row)
    with pytest.raises(DataError) as caught:
        load_corpus(write(tmp_path, rows, "a.jsonl"), reader="wic")
    assert message in f"{caught.value.problem} {caught.value.hint}"
    assert "a.jsonl, line 2" in caught.value.problem


@pytest.mark.parametrize(
    ("lemma", "words", "place"),
    [
        ("carry", "She carried them", 1),
        ("run", "A runner was running", 3),
        ("toast", "That toaster makes toasts", 3),
        ("good", "It is the best", 3),
        ("Lie", "He was lying", 2),
        ("panic", "They panicked", 1),
        ("wife", "Their wives left", 1),
        ("salesman", "Two salesmen", 1),
        ("arm", "The army came", None),
    ],
)
def test_forms_of_words(lemma: str, words: str, place: int | None) -> None:
    assert find_word(lemma, words.split()) == place


CONTEXTS = "in <b> Brazil </b> , there\ta <b>brazil nut</b>"
RATED = "1\tBrazil\tn\tnut\tn\t" + CONTEXTS + "\t1.1" + "\t0.0" * 9 + "\t11.0\n"


def test_scws(tmp_path: Path) -> None:
    (one,) = load_corpus(write(tmp_path, RATED, "ratings.txt"), reader="scws")
    assert one.texts == ("in Brazil , there", "a brazil nut")
    assert targets(one) == [["Brazil"], ["brazil", "nut"]]
    assert (one.id, one.label, one.get("group")) == ("1", 1.1, "n-n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\t11.0", "", "17 cells where 18 are wanted"),
        ("\t1.1\t", "\thigh\t", "the rating 'high' is not a number"),
        ("\t11.0", "\tnan", "the rating 'nan' is not a number"),
        ("<b> Brazil", "Brazil", "context 1: one word must stand between"),
        ("nut</b>", "nut", "context 2: one word must stand between"),
        ("<b>brazil nut</b>", "<b> </b>", "context 2: one word must stand between"),
        ("\n", "\n" + RATED, "line 2: the number '1' is that of line 1 as well"),
    ],
)
def test_wrong_scws(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, RATED.replace(old, new), "a.txt"), reader="scws")


def test_sts(tmp_path: Path) -> None:
    scored = '4.5\tA "cat" sat.\tA cat sits. \n\tNo score.\tNone.\n0\tA.\tB.\n'
    corpus = load_corpus(write(tmp_path, scored, "OnWN.test.tsv"), reader="sts")
    assert [(e.id, *e.texts, e.label) for e in corpus] == [
        ("1", 'A "cat" sat.', "A cat sits.", 4.5),
        ("3", "A.", "B.", 0.0),
    ]
    assert {e.get("group") for e in corpus} == {"OnWN"}
    write(tmp_path, "2.5\n\n1", "STS.gs.news.txt")
    pairs = write(tmp_path, "A.\tB.\n C.\tD.\nE.\tF.\thttp://x\n", "STS.input.news.txt")
    corpus = load_corpus(pairs, reader="sts")
    assert [(*e.texts, e.label) for e in corpus] == [("A.", "B.", 2.5), ("E.", "F.", 1.0)]
    assert corpus[0].get("group") == "news"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("4\tA.\n", "line 1: 2 cells where 3 are wanted"),
        ("6\tA.\tB.\n", "line 1: the score must be a number from 0 to 5"),
        ("nan\tA.\tB.\n", "line 1: the score must be"),
        ("4\tA.\t \n", "line 1: a sentence is empty"),
        ("\tA.\tB.\n", "no pair with a score"),
    ],
)
def test_wrong_sts(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, content, "a.tsv"), reader="sts")


def test_scores_that_do_not_fit(tmp_path: Path) -> None:
    pairs = write(tmp_path, "A.\tB.\n", "STS.input.news.txt")
    with pytest.raises(DataError, match=r"should be beside it, in STS\.gs\.news\.txt"):
        load_corpus(pairs, reader="sts")
    write(tmp_path, "2\n3\n", "STS.gs.news.txt")
    with pytest.raises(DataError, match="more scores than"):
        load_corpus(pairs, reader="sts")


def test_scored_pairs_of_your_own(tmp_path: Path) -> None:
    file = write(tmp_path, "word1;word2;rating\ncar;bus;3.5\ncar;sky;0\n", "mine.csv")
    corpus = load_corpus(file, text="word1", text_b="word2", label="rating")
    assert corpus.task is not None
    assert (corpus.task.kind, corpus.labels) == ("regression", [3.5, 0.0])


def test_analogies(tmp_path: Path) -> None:
    text = ": capitals\nAthens Greece Baghdad Iraq\n\n: past\nrun ran  go\twent\n"
    corpus = load_corpus(write(tmp_path, text, "q.txt"), reader="analogies")
    assert [(e.get("group"), e.get("words")) for e in corpus] == [
        ("capitals", ["Athens", "Greece", "Baghdad", "Iraq"]),
        ("past", ["run", "ran", "go", "went"]),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a b c d\n", "line 1: this question comes before"),
        (": x\na b c\n", "line 2: 3 words where four"),
        (":\na b c d\n", "line 1: the section has no name"),
        (": x\n", "sections and no questions"),
        ("", "is empty"),
    ],
)
def test_wrong_analogies(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(write(tmp_path, content, "q.txt"), reader="analogies")


def nouns(folder: Path, **changed: str) -> Path:
    files = {
        "classes_map.txt": '{"0": "club_nightclub", "1": "club_club_(weapon)"}',
        "train.data.txt": "1\tthe club  was full .\n2\tshe had\u00a0clubs\n",
        "train.gold.txt": "0\n1\n",
    }
    for name, content in {**files, **changed}.items():
        write(folder / "all" / "club", content, name)
    return folder / "all"


def test_coarse_senses(tmp_path: Path) -> None:
    corpus = load_corpus(nouns(tmp_path), reader="coarsewsd", split="train")
    assert [(e.id, e.get("senses"), e.get("group")) for e in corpus] == [
        ("club-0", [[1, 2, "club.n", "nightclub"]], "club"),
        ("club-1", [[2, 3, "club.n", "club_(weapon)"]], "club"),
    ]
    assert (corpus[0].text, corpus[1].get("words")) == (
        "the club was full .",
        ["she", "had", "clubs"],
    )
    alone = load_corpus(tmp_path / "all" / "club", reader="coarsewsd", split="train")
    assert len(alone) == 2
    table = write(tmp_path, "club\tclub_club\t2\tOur garden club .\n", "ood.tsv")
    (one,) = load_corpus(table, reader="coarsewsd")
    assert one.get("senses") == [[2, 3, "club.n", "club"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.gold.txt", "0\n", "train.data.txt has 2 sentences and train.gold.txt 1"),
        ("train.gold.txt", "0\n7\n", "line 2: its sense '7' is not in"),
        ("train.data.txt", "1\ta club\n9\ta club\n", "line 2: '9' is no position"),
        ("train.data.txt", "1\ta club\nx club\n", "line 2: 'x club' is no position"),
        ("classes_map.txt", '["club"]', "must map numbers"),
        ("classes_map.txt", '{"0": "club_", "1": "x"}', "line 1: the sense is 'club_'"),
        ("classes_map.txt", "{", "not JSON"),
    ],
)
def test_wrong_coarse_senses(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_corpus(nouns(tmp_path, **{name: content}), reader="coarsewsd", split="train")


def test_coarse_senses_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file test\.data\.txt"):
        load_corpus(nouns(tmp_path), reader="coarsewsd", split="test")
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no folder with a classes_map"):
        load_corpus(tmp_path / "none", reader="coarsewsd")
    table = write(tmp_path, "club\tclub_club\t2\n", "a.tsv")
    with pytest.raises(DataError, match="3 cells where 4"):
        load_corpus(table, reader="coarsewsd")


@pytest.mark.parametrize(
    ("reader", "good"),
    [
        ("semcor", SEMCOR),
        ("wic", lines(GLUED, GLUED, {"label": 0, "text": PROMPT})),
        ("scws", RATED + RATED.replace("1", "2", 1)),
        ("sts", "4.5\tA cat sat.\tA cat sits.\n\tNo score.\tNone.\n0\tA.\tB.\n"),
        ("analogies", ": capitals\nAthens Greece Baghdad Iraq\n"),
        ("coarsewsd", "club\tclub_club\t2\tOur garden club .\n"),
    ],
)
def test_spoilt_files_are_refused_in_words(tmp_path: Path, reader: str, good: str) -> None:
    rng, refused = random.Random(0), 0
    for _ in range(150):
        file = tmp_path / "a.txt"
        file.write_bytes(spoilt_bytes(good.encode(), rng))
        try:
            corpus = load_corpus(file, reader=reader)
        except DataError:
            refused += 1
        else:
            for example in corpus:
                check_annotations(example.annotations, example.texts, example.id)
    assert refused > 30
