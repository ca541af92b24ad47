"""GLUE folders, each task with its own quirks, written small."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.data.readers.glue import GLUE, recognises, splits_in
from bertology.data.tasks import TASKS, get_task
from bertology.errors import DataError, UnknownNameError

MNLI_HEADER = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label\n"
)
MNLI_ROWS = (
    "0\t1\t1n\tfiction\t(\t(\t(\t(\tA man.\tA person.\tneutral\tentailment\n"
    "1\t2\t2n\tfiction\t(\t(\t(\t(\tUndecided.\tWho knows.\tneutral\t-\n"
    "2\t3\t3n\tfiction\t(\t(\t(\t(\tA dog.\tA cat.\tneutral\tcontradiction\n"
)
FILES = {
    "CoLA/dev.tsv": "gj04\t1\t\tThe sailors rode.\ngj04\t0\t*\tThe sailors rided",
    "SST-2/dev.tsv": "sentence\tlabel\ncharming . \t1\nawful \t0\n",
    "MRPC/dev.tsv": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    '1\t11\t12\tHe " said .\tHe said .\r\n',
    "STS-B/dev.tsv": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\t"
    "sentence1\tsentence2\tscore\n0\tm\tf\t2012\t1\tnone\tnone\tA plane.\tAn air plane.\t4.750\n",
    "QQP/dev.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    "133273\t1\t2\tHow?\tWhy?\t0\n402555\tbroken row\n9\t3\t4\tWho?\tWhom?\t1\n",
    "MNLI/dev_matched.tsv": MNLI_HEADER + MNLI_ROWS,
    "MNLI/dev_mismatched.tsv": MNLI_HEADER + MNLI_ROWS.splitlines(keepends=True)[2],
    "QNLI/dev.tsv": "index\tquestion\tsentence\tlabel\n0\tWhat?\tThat.\tnot_entailment\n",
    "RTE/dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tNo.\tYes.\tnot_entailment\n",
    "WNLI/dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tIt has.\tThe hole has.\t1\n",
}
LABELS = {
    "CoLA": [1, 0], "SST-2": [1, 0], "MRPC": [1], "STS-B": [4.75], "QQP": [0, 1], "MNLI": [0, 2],
    "QNLI": [1], "RTE": [1], "WNLI": [1],
}  # fmt: skip


@pytest.fixture
def glue(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        file = tmp_path / "glue" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8", newline="")
    return tmp_path / "glue"


@pytest.mark.parametrize("folder", LABELS)
def test_every_task_by_path_and_by_name(folder: str, glue: Path) -> None:
    task = get_task(folder)
    corpus = load_corpus(glue / folder)
    assert corpus.labels == LABELS[folder]
    assert corpus.task == task
    assert (Field.TEXT_B in corpus.fields) == task.pair
    assert corpus.split == "validation"
    named = load_corpus(task.name, root=glue.parent)
    assert named.labels == LABELS[folder]
    assert named.name == task.name
    # A root that is the glue folder itself will do as well.
    assert load_corpus(task.name, root=glue).fingerprint == named.fingerprint


def test_tasks_of_glue_are_all_there() -> None:
    assert set(GLUE) <= set(TASKS)
    assert len(GLUE) == 9
    assert get_task("SST2") is get_task("sst-2")


def test_texts_are_as_written(glue: Path) -> None:
    assert load_corpus(glue / "MRPC")[0].text == 'He " said .'
    assert load_corpus(glue / "SST-2")[0].text == "charming ."
    assert load_corpus(glue / "CoLA")[1].text == "The sailors rided"
    assert [e.id for e in load_corpus(glue / "QQP")] == ["133273", "9"]


def test_one_file_of_a_task(glue: Path) -> None:
    assert load_corpus(glue / "MRPC" / "dev.tsv").labels == [1]
    assert load_corpus("mnli", split="validation_mismatched", root=glue).labels == [2]
    assert load_corpus("mnli", split="validation_matched", root=glue).labels == [0, 2]


def test_test_files_have_no_labels(glue: Path) -> None:
    (glue / "CoLA" / "test.tsv").write_text("index\tsentence\n0\tBill whistled.\n")
    corpus = load_corpus(glue / "CoLA", split="test")
    assert corpus[0].text == "Bill whistled."
    assert Field.LABEL not in corpus.fields


def test_labelled_test_files_are_preferred(glue: Path) -> None:
    (glue / "STS-B" / "original").mkdir()
    row = "main\tMSRvid\t2012\t1\t2.500\tA girl.\tA boy.\textra\n"
    (glue / "STS-B" / "original" / "sts-test.tsv").write_text(row)
    assert load_corpus(glue / "STS-B", split="test").labels == [2.5]


def test_mrpc_from_the_files_of_microsoft(tmp_path: Path) -> None:
    folder = tmp_path / "MRPC"
    folder.mkdir()
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    rows = "1\t1\t2\ta\tb\n0\t3\t4\tc\td\n1\t5\t6\te\tf\n"
    (folder / "msr_paraphrase_train.txt").write_text(header + rows, encoding="utf-8")
    assert len(load_corpus(folder, split="train")) == 3
    with pytest.raises(DataError, match=r"no validation split"):
        load_corpus(folder)
    (folder / "dev_ids.tsv").write_text("3\t4\n")
    assert [e.text for e in load_corpus(folder, split="train")] == ["a", "e"]
    assert [e.text for e in load_corpus(folder)] == ["c"]
    assert len(load_corpus(folder / "msr_paraphrase_train.txt")) == 3


def test_samples_in_json(glue: Path) -> None:
    sample = '{"0": {"text_a": "a", "text_b": "b", "label": "neutral"}}'
    (glue / "MNLI" / "train_sample_train.json").write_text(sample)
    corpus = load_corpus("mnli", split="train_sample", root=glue)
    assert corpus.labels == [1]
    assert "train_sample" in splits_in(glue / "MNLI")


def test_missing_splits_say_what_is_there_and_how_to_get_the_rest(glue: Path) -> None:
    with pytest.raises(DataError, match=r"no train split: no file train\.tsv.*\n.*validation"):
        load_corpus(glue / "RTE", split="train")
    with pytest.raises(DataError, match=r"(?s)no train split.*RTE\.zip"):
        load_corpus("rte", split="train", root=glue)
    with pytest.raises(UnknownNameError, match=r"Unknown split of rte 'validaton'"):
        load_corpus(glue / "RTE", split="validaton")


def test_wrong_headers_and_rows(glue: Path) -> None:
    (glue / "RTE" / "dev.tsv").write_text("index\tpremise\thypothesis\tlabel\n0\ta\tb\t1\n")
    with pytest.raises(DataError, match=r"(?s)RTE/dev\.tsv has another header.*Found: index, prem"):
        load_corpus(glue / "RTE")
    (glue / "RTE" / "dev.tsv").write_text("index\tsentence1\tsentence2\n0\ta\tb\n")
    with pytest.raises(DataError, match=r"another header"):
        load_corpus(glue / "RTE")
    (glue / "CoLA" / "dev.tsv").write_text("only\tthree\tcells\n")
    with pytest.raises(DataError, match=r"another header"):
        load_corpus(glue / "CoLA")
    (glue / "QNLI" / "dev.tsv").write_text("index\tquestion\tsentence\tlabel\n0\ta\n")
    with pytest.raises(DataError, match=r"line 2: 2 cells where 4 columns"):
        load_corpus(glue / "QNLI")
    (glue / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nfine\t2\n")
    with pytest.raises(DataError, match=r"line 2: the label '2' is outside the classes of 'sst-2'"):
        load_corpus(glue / "SST-2")


def test_the_folder_of_all_tasks_is_no_task(glue: Path) -> None:
    with pytest.raises(DataError, match=r"(?s)It holds GLUE tasks.*MRPC"):
        load_corpus(glue)
    assert recognises(glue / "MRPC")
    assert not recognises(glue)
