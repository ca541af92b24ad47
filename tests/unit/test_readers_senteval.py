"""SentEval's probing files: what is read, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.errors import DataError

TENSES = "tr\tPAST\t`` He went home .\nva\tPRES\tHe goes .\n\nte\tPRES\tDogs bark  loudly .\n"


def write(folder: Path, content: str, name: str = "past_present.txt") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(content, encoding="utf-8")
    return file


def test_labels_go_by_the_name_of_the_file(tmp_path: Path) -> None:
    corpus = load_corpus(write(tmp_path, TENSES), reader="senteval")
    assert {Field.WORDS, Field.SENTENCE_LABELS} <= corpus.fields
    assert [e.get("sentence_labels") for e in corpus] == [
        {"tense": "PAST"}, {"tense": "PRES"}, {"tense": "PRES"},
    ]  # fmt: skip
    last = corpus[2]
    assert (last.id, last.text) == ("past_present-4", "Dogs bark loudly .")
    assert last.get("words") == ["Dogs", "bark", "loudly", "."]
    assert [last.text[a:b] for a, b in last.get("offsets")] == last.get("words")


def test_the_catalogue_reads_all_tasks_of_one_part(tmp_path: Path) -> None:
    folder = tmp_path / "senteval" / "data" / "probing"
    write(folder, TENSES)
    write(folder, "te\tI\tbark dogs .\ntr\tO\tDogs bark .\n", "bigram_shift.txt")
    corpus = load_corpus("senteval", split="test", root=tmp_path)
    assert sorted(next(iter(e.get("sentence_labels").items())) for e in corpus) == [
        ("bigram-shift", "I"),
        ("tense", "PRES"),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("tr\tPAST\tHe went .\nxx\tPAST\tHe went .\n", "line 2: the part must be tr, va or te"),
        ("tr\tPAST\n", "line 1: part, label and sentence"),
        ("tr\t\tHe went .\n", "line 1: part, label and sentence"),
        ("\ntr\tPAST\tHe went .\tagain\n", "line 2: part, label and sentence"),
    ],
)
def test_lines_that_are_wrong_are_named(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(DataError, match=f"past_present.txt, {told}"):
        load_corpus(write(tmp_path, content), reader="senteval")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"notes\.txt: this is no name of a task"):
        load_corpus(write(tmp_path, TENSES, "notes.txt"), reader="senteval")


def test_labels_of_sentences_in_json_are_checked(tmp_path: Path) -> None:
    good = (
        '{"text": "Dogs bark", "words": ["Dogs", "bark"], "sentence_labels": {"tense": "past"}}\n'
    )
    (example,) = load_corpus(write(tmp_path, good, "a.jsonl"))
    assert example.get("sentence_labels") == {"tense": "past"}
    for bad in ('["past"]', '{"tense": ""}', '{"tense": 3}'):
        wrong = good.replace('{"tense": "past"}', bad)
        with pytest.raises(DataError, match="mapping of tasks to labels"):
            load_corpus(write(tmp_path, wrong, "b.jsonl"))
