"""The readers of data in which people said why: ERASER and e-SNLI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertology.data.readers import MissingSplitError, Request
from bertology.data.readers.rationales import read_e_snli, read_eraser
from bertology.errors import DataError


def eraser_file(folder: Path, **more: object) -> Path:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "a.txt").write_text("a dull film .\nnot worth it .\n")
    span = {"docid": "a.txt", "start_token": 1, "end_token": 2, "text": "dull"}
    row = {"annotation_id": "a.txt", "classification": "NEG", "evidences": [[span]]} | more
    file = folder / "val.jsonl"
    other = {**row, "classification": "POS", "annotation_id": "b"}
    file.write_text("\n".join(json.dumps(one) for one in (row, other)))
    return file


def test_eraser(tmp_path: Path) -> None:
    first, second = read_eraser(eraser_file(tmp_path))
    assert (first.label, second.label) == (0, 1)
    assert first.text == "a dull film . not worth it ."
    assert first.get("rationales") == [[1, 2]]
    assert first.get("sentences") == [0, 4]
    start, end = first.get("offsets")[1]
    assert first.text[start:end] == "dull"


def test_evidence_without_a_word_is_none(tmp_path: Path) -> None:
    """As in the published test split of the film reviews."""
    spans = [{"docid": "a.txt", "start_token": at, "end_token": 4} for at in (3, 4)]
    first, _ = read_eraser(eraser_file(tmp_path, evidences=[spans]))
    assert first.get("rationales") == [[3, 4]]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"evidences": [[{"docid": "a.txt", "start_token": 7, "end_token": 99}]]}, "which has 8"),
        ({"evidences": [[{"docid": "../a", "start_token": 0, "end_token": 1}]]}, "no document"),
        ({"evidences": [[1]]}, "evidences are"),
        ({"annotation_id": None}, "no annotation_id"),
    ],
)
def test_broken_evidence_is_refused(tmp_path: Path, more: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_eraser(eraser_file(tmp_path, **more))


def test_e_snli_highlights(tmp_path: Path) -> None:
    header = (
        "pairID,gold_label,Sentence1,Sentence2,Sentence1_marked_1,Sentence2_marked_1,"
        "Sentence1_marked_2,Sentence2_marked_2\n"
    )
    row = "x,contradiction,A dog ran.,It sat.,A *dog* *ran.*,It *sat.*,A dog *ran.*,It sat.\n"
    file = tmp_path / "esnli_dev.csv"
    file.write_text(header + row)
    for source in (file, tmp_path):
        (one,) = read_e_snli(source, Request("e-snli", "validation"))
        assert one.texts == ("A dog ran.", "It sat.")
        assert one.label == 2
        assert one.get("rationales") == [[1, 2], [2, 3], [4, 5]]
        start, end = one.get("offsets")[4]
        assert " ".join(one.texts)[start:end] == "sat."
    file.write_text(header + row.replace("A dog *ran.*", "A *ran.*"))
    with pytest.raises(DataError, match="the same words of sentence 1"):
        read_e_snli(file)


def test_e_snli_explanations(tmp_path: Path) -> None:
    files = {
        "s1.dev": "A man is selling donuts . \n",
        "s2.dev": "A woman drinks coffee . \n",
        "labels.dev": "contradiction\n",
        "preproc1_expl_1.dev": "a man is not a woman .\n",
        "preproc1_expl_2.dev": "the man is selling , not drinking coffee .\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (one,) = read_e_snli(tmp_path, Request("e-snli", "validation"))
    words = one.get("words")
    assert [words[a] for a, _ in one.get("rationales")] == ["man", "selling", "woman", "coffee"]
    (tmp_path / "labels.dev").write_text("contradiction\nneutral\n")
    with pytest.raises(DataError, match="as many lines each"):
        read_e_snli(tmp_path)
    with pytest.raises(MissingSplitError, match=r"neither esnli_test\.csv nor s1\.test"):
        read_e_snli(tmp_path, Request("e-snli", "test"))
