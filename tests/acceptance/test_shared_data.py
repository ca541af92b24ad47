"""The real datasets, as published: every reader against the true files and their known counts."""

from __future__ import annotations

import gc
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from bertology.data import Corpus, Example, Field, catalog, load_corpus
from bertology.data.words.alignment import align
from bertology.data.words.inflections import find_word
from bertology.data.words.piece_words import known_words

Unpack = Callable[[str], Path]
Load = Callable[[str, str, str], Corpus]


@pytest.fixture(scope="module", autouse=True)
def no_search_for_garbage() -> Iterator[None]:
    """Examples are many objects without cycles: to look through them takes a sixth of the time."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def unpack(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """Unpack an archive once per run; gives the data root it was unpacked into."""
    root = tmp_path_factory.mktemp("data")
    done: set[str] = set()

    def unpacked(name: str) -> Path:
        archive = shared / "data" / f"{name}.tar.xz"
        if not archive.is_file():
            pytest.skip(f"needs {name}.tar.xz among the shared datasets")
        if name not in done:
            with tarfile.open(archive) as tar:
                tar.extractall(root, filter="data")
            done.add(name)
        return root

    return unpacked


@pytest.fixture(scope="module")
def load(unpack: Unpack) -> Load:
    """Load a split of what an archive has; what several tests look at is read once."""

    def loaded(name: str, split: str, archive: str) -> Corpus:
        roots = {unpack(one) for one in archive.split("+")}
        return load_corpus(name, split=split, root=roots.pop())

    kept = cache(loaded)
    return lambda name, split, archive: (kept if (name, split) in AGAIN else loaded)(
        name, split, archive
    )


# name, split, how many examples, the archive they lie in (or several: one+other)
COUNTS = [
    ("mrpc", "train", 3667, "glue"),
    ("mrpc", "validation", 408, "glue"),
    ("mrpc", "test", 1725, "glue"),
    ("rte", "train", 2490, "glue"),
    ("rte", "validation", 277, "glue"),
    ("sts-b", "train", 5749, "glue"),
    ("sts-b", "validation", 1500, "glue"),
    ("sts-b", "test", 1379, "glue"),
    ("cola", "train", 8551, "glue"),
    ("cola", "validation", 1043, "glue"),
    ("sst-2", "train", 67349, "glue"),
    ("sst-2", "validation", 872, "glue"),
    ("wnli", "train", 635, "glue"),
    ("wnli", "validation", 71, "glue"),
    ("qnli", "validation", 5463, "glue"),
    ("mnli", "validation", 9815, "glue"),
    *((t, "train_sample", 8999, "glue") for t in ("mnli", "qnli", "qqp")),
    *((t, "train_sample_validation", 1000, "glue") for t in ("mnli", "qnli", "qqp")),
    ("hans", "train", 30000, "hans"),
    ("hans", "validation", 30000, "hans"),
    ("ud-ewt", "validation", 2001, "ud-english"),
    ("ud-ewt", "test", 2077, "ud-english"),
    ("ud-pud", "test", 1000, "ud-english"),
    ("ud-gum", "validation", 1575, "ud-more"),
    ("ud-partut", "validation", 156, "ud-more"),
    ("blimp", "test", 67000, "blimp"),
    ("linzen-agreement", "test", 7489, "linzen-agreement"),
    ("clams", "test", 314692 // 2, "clams-en-de-fr"),
    ("clams-de", "test", 95640 // 2, "clams-en-de-fr"),
    ("clams-fr", "test", 98720 // 2, "clams-en-de-fr"),
    ("clams-languages", "test", 342720 // 2, "clams-en-de-fr"),
    ("xnli", "validation", 15 * 2490, "xnli"),
    ("tatoeba", "test", 2 * 88877, "tatoeba"),
    ("word-alignment", "test", 447 + 582 + 248 + 450, "word-alignment"),
    ("ud-gsd", "validation", 8119, "ud-english+ud-more"),
    ("squad", "validation", 10570, "squad-v1.1"),
    ("wikitext-2", "validation", 1841, "wikitext-2"),
    ("wikitext-2", "test", 2185, "wikitext-2"),
    ("lama-google-re", "test", 5528, "lama"),
    ("lama-google-re-sentences", "test", 5200, "lama"),
    ("lama-squad", "test", 302, "lama"),  # 305, and three with two blanks
    ("lama-trex", "test", 22881, "lama"),
    ("framenet", "examples", 21288, "framenet-1.5"),
    ("ptb-sample", "test", 3914, "nltk-treebank"),
    ("litbank", "test", 100, "coref-conll"),
    ("ontogum", "validation", 30, "coref-conll"),
    ("ontogum", "test", 30, "coref-conll"),
    ("gum-coreference", "validation", 30, "ud-more"),
    ("gap", "validation", 454, "gap"),
    ("gap", "test", 2000, "gap"),
    ("winobias", "validation", 1584, "winobias"),
    ("superglue-wsc", "train", 307, "wsc"),  # 554 questions
    ("superglue-wsc", "validation", 53, "wsc"),
    ("conll2000", "train", 8936, "conll2000-chunking"),
    ("conll2000", "test", 2012, "conll2000-chunking"),
    ("conll2003", "validation", 3250, "ner-bio"),
    ("conll2003", "test", 3453, "ner-bio"),
    ("wnut17", "validation", 1009, "ner-bio"),
    ("propbank-ewt", "validation", 2002, "propbank-ewt"),
    ("propbank-ewt", "test", 2077, "propbank-ewt"),
    ("spr2", "train", 2191, "semantic-proto-roles"),
    ("semeval2010-task8", "train", 8000, "semeval2010-task8"),
    ("semeval2010-task8", "test", 2717, "semeval2010-task8"),
    ("quail", "validation", 2164, "quail"),
    ("quail", "challenge", 556, "quail"),
    ("e-snli", "validation", 9842, "rationales"),
    ("eraser-movies", "train", 300, "rationales"),
    ("eraser-movies", "validation", 200, "rationales"),
    ("eraser-movies", "test", 199, "rationales"),
    ("cprag-102", "test", 34, "lm-diagnostics"),  # 102 completions
    ("role-88", "test", 88, "lm-diagnostics"),
    ("neg-136", "test", 68, "lm-diagnostics"),  # 136 completions
    ("lama-negated", "high_ranked", 33495, "lama"),
    ("lama-negated", "random", 33495, "lama"),  # 3 × 11,165
    ("pararel", "test", 27610, "lama-pararel-trex"),
    ("lama-trex-41", "test", 29411, "lama-pararel-trex+lama"),
    ("lama-trex-mined", "test", 29411, "lama-pararel-trex+lama"),
    ("lama-trex-paraphrased", "test", 29411, "lama-pararel-trex+lama"),
    ("lama-trex-prompts", "test", 29411, "lama-pararel-trex+lama"),
    ("numersense", "train", 10444, "numersense"),
    ("numersense", "validation", 200, "numersense"),
    ("crows-pairs", "test", 1508, "crows-pairs"),
    ("npi-sentences", "test", 2445, "npi-judgements"),
    ("npi-pairs", "test", 109, "npi-judgements"),
    ("npi-paradigms", "test", 2897, "npi-judgements"),
    ("npi-ratings", "test", 500, "npi-judgements"),
    ("npi-beginnings", "test", 1000, "npi-judgements"),
    ("object-properties", "all", 24071, "physical-commonsense"),
    ("object-properties", "test", 4813, "physical-commonsense"),
    ("object-affordances", "test", 893, "physical-commonsense"),
    ("affordance-properties", "all", 12950, "physical-commonsense"),
    ("physical-commonsense", "test", 4813 + 893 + 12950, "physical-commonsense"),
    ("verb-physics", "test", 6007, "physical-commonsense"),  # 1,828 pairs
    ("olmpics", "train", 6000, "olmpics"),
    ("olmpics", "validation", 2879, "olmpics"),
    ("olmpics-questions", "validation", 983, "olmpics"),
    *(
        ("semantic-fragments", s, 8000, "semantic-fragments")
        for s in ("train", "validation", "test")
    ),
    ("breaking-nli", "test", 8193, "semantic-fragments"),
    ("monli", "train", 1002, "nli-monotonicity"),
    ("monli", "test", 200, "nli-monotonicity"),
    ("monli", "positive", 1476, "nli-monotonicity"),
    ("med", "test", 5294, "nli-monotonicity"),
    ("nan-nli", "test", 258, "nli-monotonicity"),
    ("function-words-nli", "test", 1518, "nli-monotonicity"),
    ("function-words-acceptability", "test", 1548, "nli-monotonicity"),
    ("awpnli", "test", 716, "numeracy-nli"),
    ("semcor", "train", 30340, "semcor"),
    ("semcor", "test", 6747, "semcor"),
    ("coarsewsd-20", "train", 23370, "coarsewsd-20"),
    ("coarsewsd-20", "test", 10196, "coarsewsd-20"),
    ("coarsewsd-20-balanced", "train", 8737, "coarsewsd-20"),
    ("coarsewsd-20-out-of-domain", "test", 339, "coarsewsd-20"),
    ("wic", "train", 5428, "wic"),
    ("wic", "validation", 638, "wic"),
    ("superglue-wic", "validation", 638, "wic"),
    ("simlex-999", "test", 999, "word-sim"),
    ("simverb-3500", "test", 3500, "word-sim"),
    ("wordsim-353", "test", 353, "word-sim"),
    ("wordsim-353-similarity", "test", 203, "word-sim"),
    ("wordsim-353-relatedness", "test", 252, "word-sim"),
    ("men-3000", "test", 3000, "word-sim"),
    ("mturk-287", "test", 287, "word-sim"),
    ("mturk-771", "test", 771, "word-sim"),
    ("rg-65", "test", 65, "word-sim"),
    ("mc-30", "test", 30, "word-sim"),
    ("rare-words", "test", 2034, "word-sim"),
    ("yp-130", "test", 130, "word-sim"),
    ("verb-143", "test", 144, "word-sim"),
    ("sts-12", "train", 1484, "sts"),
    ("sts-12", "test", 2358, "sts"),
    ("sts-13", "test", 1500, "sts"),
    ("sts-14", "test", 3750, "sts"),
    ("sts-15", "test", 3000, "sts"),  # of 8,500 pairs
    ("sts-16", "test", 1186, "sts"),  # of 9,183 pairs
]
_MANY = 20_000
# Looked at by other tests, too.
AGAIN = {
    ("coarsewsd-20", "test"), ("conll2000", "test"), ("conll2003", "test"), ("mrpc", "validation"),
    ("semcor", "test"), ("sts-b", "validation"), ("superglue-wic", "validation"),
    ("ud-ewt", "validation"), ("wic", "train"),
}  # fmt: skip
# Not among the shared datasets; the first is read as framenet is, the second in a test of its own.
NOT_HERE = {
    "framenet-v17",
    "google-analogies",
    "lama-conceptnet",
    "scws",
    "senteval",
    "wsc",
    "spr1",
}  # spr1: two archives, see its own test


def marked(name: str, split: str, count: int, archive: str) -> object:
    """The largest take long to read; others are of the same formats."""
    marks = [pytest.mark.slow] if count > _MANY else []
    return pytest.param(name, split, count, archive, marks=marks)


@pytest.mark.parametrize(("name", "split", "count", "archive"), [marked(*row) for row in COUNTS])
def test_counts(name: str, split: str, count: int, archive: str, load: Load) -> None:
    corpus = load(name, split, archive)
    assert len(corpus) == count
    assert corpus.split == split
    assert set(catalog.get(name).fields) <= corpus.fields
    assert len({example.id for example in corpus}) == count


def test_proto_roles_are_of_words_of_trees(unpack: Unpack, tmp_path: Path) -> None:
    for name, archive in (("spr1", "semantic-proto-roles"), ("treebank", "nltk-treebank")):
        (tmp_path / name).symlink_to(unpack(archive) / name)
    corpus = load_corpus("spr1", split="all", root=tmp_path)
    judged = [pair for example in corpus for pair in example.get("proto_roles")]
    assert (len(corpus), len(judged)) == (403, 830)  # 14,940 judgements of 18 properties
    assert {len(pair[4]) for pair in judged} == {18}


def test_chunks_and_entities_are_as_many_as_published(load: Load) -> None:
    chunks = load("conll2000", "test", "conll2000-chunking")
    assert sum(len(example.get("chunks")) for example in chunks) == 23852
    entities = load("conll2003", "test", "ner-bio")
    assert sum(len(example.get("entities")) for example in entities) == 5648


def test_words_of_wic_are_found_by_their_form_where_their_characters_say(load: Load) -> None:
    """The same words as those that SuperGLUE points to, and one in each sentence to learn from."""
    corpus = load("superglue-wic", "validation", "wic")
    for example in corpus:
        for text, spans, (first, end) in _targets(example):
            words = [text[a:b] for a, b in spans]
            assert (first, end) == (find_word(example.get("group"), words), first + 1)
    for example in load("wic", "train", "wic"):
        for text, spans, (first, _) in _targets(example):
            a, b = spans[first]
            assert text[a:b].lower()[0] == example.get("group")[0] or len(text[a:b]) < 6


def _targets(example: Example) -> list[tuple[str, list[tuple[int, int]], list[int]]]:
    return list(zip(example.texts, known_words(example), example.get("targets"), strict=True))


def test_senses_are_of_their_words(load: Load) -> None:
    corpus = load("coarsewsd-20", "test", "coarsewsd-20")
    for example in corpus:
        ((first, end, lemma, _),) = example.get("senses")
        assert example.get("words")[first:end] == [lemma.removesuffix(".n")]
    assert len({(sense[2:]) for e in corpus for sense in map(tuple, e.get("senses"))}) == 53
    corpus = load("semcor", "test", "semcor")
    for example in corpus:
        spelt = [example.text[a:b] for a, b in example.get("offsets")]
        assert spelt == example.get("words")
    assert len({e.get("group") for e in corpus}) == 61  # of 351
    assert sum(len(e.get("senses")) for e in corpus) == 40367


def test_every_entry_is_tried() -> None:
    read = {name for name, entry in catalog.entries().items() if entry.reader != "grammar"}
    ours = {name for name in read if not name.startswith("twisters")}  # a test's own plugin
    of_treebanks = {"pud", "ud-agreement"}  # in test_treebanks.py, test_agreement_pairs.py
    assert ours - NOT_HERE - of_treebanks == {name for name, *_ in COUNTS}


def test_mrpc_is_whole_in_the_files_of_microsoft(unpack: Unpack, tmp_path: Path) -> None:
    folder = tmp_path / "MRPC"
    folder.mkdir()
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"):
        (folder / name).symlink_to(unpack("glue") / "glue" / "MRPC" / name)
    assert len(load_corpus(folder, split="train")) == 3668
    assert len(load_corpus(folder)) == 408


def test_labels_are_what_glue_says(load: Load, unpack: Unpack) -> None:
    mrpc = load("mrpc", "validation", "glue")
    assert sum(mrpc.labels) == 279  # of 408: the majority class, 68.4 %
    assert Field.LABEL not in load_corpus("rte", split="test", root=unpack("glue")).fields
    scores = load("sts-b", "validation", "glue").labels
    assert (min(scores), max(scores)) == (0.0, 5.0)


def test_words_stand_where_the_offsets_say(load: Load) -> None:
    for example in load("ud-ewt", "validation", "ud-english"):
        spelt = [example.text[a:b] for a, b in example.get(Field.OFFSETS)]
        assert spelt == example.get(Field.WORDS)


def test_alignment_of_a_treebank(shared: Path, load: Load) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    found = sorted((shared / "models").glob("*/tokenizer.json"))
    if not found:
        pytest.skip("needs a shared checkpoint with a fast tokenizer")
    tokenizer = tokenizers.Tokenizer.from_file(str(found[0]))
    for example in load("ud-ewt", "validation", "ud-english").take(500, seed=0):
        made = align(tokenizer.encode(example.text), example.text, words=[example.get("offsets")])
        for piece, span in enumerate(made.piece_spans):
            assert (made.word_of(piece) is None) == (span is None)
        assert all(made.overlapping(word) for word in range(len(made)))
