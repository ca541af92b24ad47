"""Commas, semicolons and tabs: told from the file, or by the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data import load_corpus
from bertology.data.corpus import Corpus
from bertology.errors import DataError, ParameterError


def read(folder: Path, content: str, name: str = "a.csv", **given: object) -> Corpus:
    (folder / name).write_text(content, encoding="utf-8")
    return load_corpus(folder / name, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text;label\nWell, good;1\nbad, I think;0\n"),
        ("a.csv", "text\tlabel\nWell, good\t1\nbad, I think\t0\n"),
        ("a.csv", 'text,label\n"Well, good",1\n"bad, I think",0\n'),
        ("a.csv", '\ufefftext;label\r\n"Well, good";"1"\r\n"bad, I think";"0"\r\n'),
        ("a.csv", "sep=;\r\ntext;label\r\nWell, good;1\r\nbad, I think;0\r\n"),
        ("a.csv", "text;label, by hand;label\nWell, good;yes;1\nbad, I think;no;0\n"),
        ("a.tsv", "text;label\nWell, good;1\nbad, I think;0\n"),
        ("a.tsv", "text\tlabel\nWell, good\t1\nbad, I think\t0\n"),
    ],
)  # fmt: skip
def test_the_file_tells(tmp_path: Path, name: str, content: str) -> None:
    corpus = read(tmp_path, content, name)
    assert [(e.text, e.label) for e in corpus] == [("Well, good", 1), ("bad, I think", 0)]


def test_one_column_of_texts_stays_one(tmp_path: Path) -> None:
    assert [e.text for e in read(tmp_path, "text\na; b\nc\n")] == ["a; b", "c"]
    assert [e.text for e in read(tmp_path, "text\na, b\nc\n", "a.tsv")] == ["a, b", "c"]


def test_semicolons_in_texts_separate_nothing(tmp_path: Path) -> None:
    corpus = read(tmp_path, "text,label\na; b,1\nc; d,0\n")
    assert [e.text for e in corpus] == ["a; b", "c; d"]


def test_columns_that_are_named_decide(tmp_path: Path) -> None:
    """Both cut every row evenly; but only one makes a column of that name."""
    content = "review; in words,gold\nno; good,1\nyes; well,0\n"
    corpus = read(tmp_path, content, text="review; in words", label="gold")
    assert corpus[0].text == "no; good"


def test_what_is_not_clear_is_asked(tmp_path: Path) -> None:
    content = "a;b,c\nx;y,z\n"
    with pytest.raises(DataError) as error:
        read(tmp_path, content)
    assert "a.csv: it is not clear whether its cells are separated by commas (2" in str(error.value)
    assert "semicolons (2 columns)" in str(error.value)
    assert "--columns separator=comma" in str(error.value)
    assert read(tmp_path, content, separator="comma", text="c")[0].text == "z"
    assert read(tmp_path, content, separator="semicolon", text="b,c")[0].text == "y,z"
    assert read(tmp_path, "text|label\na, b|1\nc|0\n", separator="|")[0].text == "a, b"


def test_a_separator_is_one_character(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"comma, semicolon, tab or a single character"):
        read(tmp_path, "text;label\na;b\n", separator="semicolons")


def test_origin_keeps_the_separator(tmp_path: Path) -> None:
    corpus = read(tmp_path, "a;b,c\nx;y,z\n", separator="comma", text="c")
    assert load_corpus(**corpus.origin).fingerprint == corpus.fingerprint


def test_uneven_rows_are_named_whatever_separates(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.csv, line 3: 1 cells where 2 columns are"):
        read(tmp_path, "text;label\na;1\nb\n")
    with pytest.raises(DataError, match=r"a.csv, line 4: 1 cells where 2 columns are"):
        read(tmp_path, "sep=;\ntext;label\na;1\nb\n")


def test_decimal_commas_are_not_names_of_classes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"decimal comma, such as '1,5'(.|\n)*with a point"):
        read(tmp_path, "text;label\na;1,5\nb;2\n")
