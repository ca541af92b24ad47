"""Documents from files: where they begin and end, and what is said of a file that is no good."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.errors import DataError
from bertology.train.pretrain.text import Document, find_files, read_documents

PLAIN = "\n\nOne.\n  Two. \n\n \t\nThree.\r\n\nFour."
READ = [Document(("One.", "Two.")), Document(("Three.",)), Document(("Four.",))]


@pytest.mark.parametrize(
    ("ending", "pack"),
    [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)],
)
def test_lines_are_sentences_and_empty_lines_end_documents(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / f"a.txt{ending}"
    file.write_bytes(pack(PLAIN.encode()))
    assert list(read_documents([file])) == READ


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(PLAIN, "utf-8-sig")
    (tmp_path / "a.jsonl").write_text('{"text": "One."}', "utf-8-sig")
    assert list(read_documents([tmp_path / "a.txt"])) == READ
    assert list(read_documents([tmp_path / "a.jsonl"])) == [Document(("One.",))]


def test_documents_do_not_run_from_one_file_into_the_next(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name} one\n{name} two")
    read = list(read_documents([tmp_path / "a", tmp_path / "b"]))
    assert [d.sentences for d in read] == [("a one", "a two"), ("b one", "b two")]


LINE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8)


@given(st.lists(st.lists(LINE, min_size=1, max_size=4), max_size=5))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]]
) -> None:
    file = tmp_path_factory.mktemp("t") / "a.txt"
    text = "\n\n".join("\n".join(lines) for lines in texts)
    file.write_text(text, "utf-8-sig")
    expected = [tuple(x for line in lines if (x := line.strip())) for lines in texts]
    assert [d.sentences for d in read_documents([file])] == [e for e in expected if e]


@pytest.mark.parametrize(
    ("line", "document"),
    [
        ({"text": "Ann saw Bo."}, Document(("Ann saw Bo.",))),
        ({"sentences": ["A.", "B."], "label": 3}, Document(("A.", "B."), label="3")),
        (
            {"text": "Ann saw Bo.", "entities": [[0, 3], [8, 10]]},
            Document(("Ann saw Bo.",), (((0, 3), (8, 10)),)),
        ),
        (
            {"sentences": ["Ann.", "No."], "entities": [[[0, 3]], []]},
            Document(("Ann.", "No."), (((0, 3),), ())),
        ),
        (
            {"text": "Ja.", "translation": "Yes.", "entities": []},
            Document(("Ja.", "Yes."), ((), ())),
        ),
    ],
)
def test_json_lines(tmp_path: Path, line: dict[str, object], document: Document) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(("\n" + json.dumps(line) + "\n").encode()))
    assert list(read_documents([file])) == [document]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "no end', "line 2"),
        ('["a list"]', "line 2"),
        ("{}", "neither text nor sentences"),
        ('{"text": null}', "text must be text"),
        ('{"sentences": "one string"}', "sentences must be text"),
        ('{"sentences": ["a", 1]}', "sentences must be text"),
        ('{"text": "a", "translation": ["b"]}', "translation must be text"),
        ('{"sentences": ["a", "b"], "entities": [[]]}', "1 lists of entities for 2 sentences"),
        ('{"text": "Ann", "entities": [[0, 4]]}', r"\[0, 4\] is not within its 3 characters"),
        ('{"text": "Ann", "entities": [[2, 2]]}', "is not within"),
        ('{"text": "Ann", "entities": [0, 3]}', "line 2"),
    ],
)
def test_a_bad_json_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "fine"}\n' + line + "\n")
    documents = read_documents([file])
    assert next(documents).sentences == ("fine",)
    with pytest.raises(DataError, match=problem) as caught:
        next(documents)
    assert "a.jsonl, line 2" in str(caught.value)
    assert "A line looks like" in str(caught.value)


def _broken(pack: Callable[[bytes], bytes]) -> bytes:
    whole = bytearray(pack(bytes(range(33, 127)) * 50))
    whole[len(whole) // 2] ^= 255
    return bytes(whole)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", b"caf\xe9\n", "not UTF-8"),
        ("a.jsonl", b'{"text": "caf\xe9"}\n', "not UTF-8"),
        ("a.txt.xz", b"this is no xz", "cannot be read"),
        ("a.txt.xz", _broken(lzma.compress), "cannot be read"),
        ("a.txt.xz", lzma.compress(b"a line\n" * 9)[:-9], "cannot be read"),
        ("a.txt.gz", _broken(gzip.compress), "cannot be read"),
        ("a.txt.gz", gzip.compress(b"a line\n" * 9)[:-9], "cannot be read"),
        ("a.txt.bz2", _broken(bz2.compress), "cannot be read"),
    ],
    # Names of our own: gzip writes the time into its bytes, and two workers would disagree.
    ids=["latin-1", "latin-1-json", "no-xz", "xz", "cut-xz", "gz", "cut-gz", "bz2"],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=problem):
        list(read_documents([tmp_path / name]))


def test_files_by_pattern_each_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md", "odd[1].txt"):
        (tmp_path / name).write_text("x")
    found = find_files([tmp_path / "c.md", f"{tmp_path}/*.txt", tmp_path / "a.txt"])
    assert [f.name for f in found] == ["c.md", "a.txt", "b.txt", "odd[1].txt"]
    assert find_files([tmp_path / "odd[1].txt"]) == [tmp_path / "odd[1].txt"]


def test_a_missing_file_is_said_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no text file .*none\.txt"):
        find_files([tmp_path / "none.txt"])
    with pytest.raises(DataError, match="no text file"):
        find_files([tmp_path])
    with pytest.raises(DataError, match="cannot be read"):
        list(read_documents([tmp_path / "none.txt"]))
