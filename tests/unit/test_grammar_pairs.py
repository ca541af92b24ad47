"""Laws of the paired data: labels balanced, one word apart, no cue where there should be none."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bertology.data import grammar
from bertology.data.corpus import Corpus
from bertology.data.grammar.entailment import HEURISTICS

MINIMAL = ("grammar-agreement", "grammar-reflexives", "grammar-npi")


def words_of(text: str) -> list[str]:
    return text.lower().replace(",", "").rstrip(".?").split()


def bag_of_words_accuracy(train: Corpus, test: Corpus) -> float:
    """The best a linear classifier does on which words the two sentences share or not."""
    vocabulary = sorted({w for e in train for t in (e.text, e.text_b) for w in words_of(str(t))})
    index = {w: i for i, w in enumerate(vocabulary)}

    def features(corpus: Corpus) -> np.ndarray:
        table = np.zeros((len(corpus), 2 * len(index) + 1), dtype=np.float32)
        for row, e in enumerate(corpus):
            a, b = Counter(words_of(e.text)), Counter(words_of(str(e.text_b)))
            for w in (a.keys() | b.keys()) & index.keys():
                table[row, index[w]] = abs(a[w] - b[w])
                table[row, len(index) + index[w]] = min(a[w], b[w])
            table[row, -1] = sum((a & b).values()) / max(len(a | b), 1)
        return table

    model = LogisticRegression(max_iter=300).fit(features(train), train.labels)
    return float(model.score(features(test), test.labels))


made = cache(grammar.corpus)  # several tests look at the same sentences


def minimal(name: str) -> Corpus:
    return made(name, split="train", size=2000)


def acceptability(split: str = "train") -> Corpus:
    return made("grammar-acceptability", split=split, size=960)


@pytest.fixture(scope="module")
def paraphrases() -> dict[str, Corpus]:
    return {s: made("grammar-paraphrase", split=s, size=1000) for s in ("train", "test")}


@pytest.fixture(scope="module")
def entailments() -> Corpus:
    return made("grammar-entailment", split="validation", size=600)


def test_paraphrase_task_is_declared_and_balanced(paraphrases: dict[str, Corpus]) -> None:
    corpus = paraphrases["train"]
    assert corpus.task is not None
    assert corpus.task.labels == ("not-paraphrase", "paraphrase")
    assert corpus.task.metrics == ("accuracy", "f1")
    assert corpus.task.pair
    assert Counter(corpus.labels) == {0: 500, 1: 500}
    assert all(e.text != e.text_b for e in corpus)


def test_bag_of_words_does_not_solve_the_paraphrases(paraphrases: dict[str, Corpus]) -> None:
    assert bag_of_words_accuracy(paraphrases["train"], paraphrases["test"]) < 0.65


def test_most_non_paraphrases_keep_their_words_when_hard(paraphrases: dict[str, Corpus]) -> None:
    def overlap(corpus: Corpus, label: int) -> float:
        pairs = [(words_of(e.text), words_of(str(e.text_b))) for e in corpus if e.label == label]
        return float(np.mean([len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in pairs]))

    corpus = paraphrases["test"]
    assert abs(overlap(corpus, 0) - overlap(corpus, 1)) < 0.06
    easy = made("grammar-paraphrase", size=100, hard=False)
    assert all("changed word" in e.get("kind") for e in easy if e.label == 0)
    assert easy.origin["hard"] is False


def test_every_kind_of_paraphrase_occurs(paraphrases: dict[str, Corpus]) -> None:
    kinds = {e.get("kind").split(",")[0] for e in paraphrases["train"]}
    expected = {"active", "passive", "cleft", "dative", "fronting", "extraposition"}
    assert kinds == expected | {"order of clauses"}


def test_entailment_task_is_declared_and_balanced(entailments: Corpus) -> None:
    assert entailments.task is not None
    assert entailments.task.labels == ("entailment", "non-entailment")
    cells = Counter((e.get("heuristic"), e.label) for e in entailments)
    assert cells == {(h, label): 100 for h in HEURISTICS for label in (0, 1)}


def is_part(part: list[str], whole: list[str]) -> bool:
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def fillers_aside(words: list[str]) -> set[str]:
    """Voice and number change function words and endings; heuristics speak of content words."""
    return {w for w in words if w not in ("was", "were")}


def test_every_entailment_pair_satisfies_its_heuristic(entailments: Corpus) -> None:
    for e in entailments:
        premise, hypothesis = words_of(e.text), words_of(str(e.text_b))
        if e.get("heuristic") == "lexical_overlap":
            assert fillers_aside(hypothesis) <= set(premise), (e.text, e.text_b)
        else:
            assert is_part(hypothesis, premise), (e.text, e.text_b)


@pytest.mark.parametrize("off", [(h,) for h in HEURISTICS] + [HEURISTICS])
def test_a_heuristic_switched_off_becomes_a_perfect_cue(off: tuple[str, ...]) -> None:
    corpus = made("grammar-entailment", size=120, **dict.fromkeys(off, False))
    assert Counter(corpus.labels) == {0: 60, 1: 60}
    for e in corpus:
        if e.get("heuristic") in off:
            overlaps = fillers_aside(words_of(str(e.text_b))) <= set(words_of(e.text))
            assert overlaps == (e.label == 0), (e.text, e.text_b)


def test_acceptability_is_of_single_sentences_of_all_kinds() -> None:
    corpus = acceptability()
    assert corpus.task is not None
    assert not corpus.task.pair
    assert corpus.task.labels == ("unacceptable", "acceptable")
    kinds = Counter((e.get("kind"), e.label) for e in corpus)
    each = {"agreement": 120, "reflexives": 160, "npi": 200}
    assert kinds == {(kind, label): n for kind, n in each.items() for label in (0, 1)}
    assert len({e.text for e in corpus}) == len(corpus)
    assert all(e.text_b is None for e in corpus)


def test_bag_of_words_does_not_solve_acceptability() -> None:
    assert bag_of_words_accuracy(acceptability(), acceptability("test")) < 0.7


def test_a_past_tense_is_not_called_a_mistake() -> None:
    for seed in (1, 2, 3):
        for e in made("grammar-agreement", size=1500, seed=seed):
            bad = e.get("contrast").split()
            assert not (e.get("words")[e.get("critical")] == "reads" and "read" in bad), e.text


def test_acceptable_is_what_no_other_corpus_calls_bad() -> None:
    good = {e.text for e in acceptability() if e.label == 1}
    bad = {e.get("contrast") for name in MINIMAL for e in minimal(name)}
    assert not good & bad


def test_agreement_pairs_differ_in_the_verb_alone() -> None:
    corpus = minimal("grammar-agreement")
    assert Counter(e.get("attractors") for e in corpus) == dict.fromkeys(range(5), 400)
    for e in corpus:
        good, bad = e.text.split(), e.get("contrast").split()
        assert len(good) == len(bad)
        differ = [i for i, (a, b) in enumerate(zip(good, bad, strict=True)) if a != b]
        assert len(differ) == 1
        assert e.get("verb") == e.get("critical")
        assert e.get("words")[e.get("critical")] == good[differ[0]].rstrip(".")


def test_agreement_holds_in_good_and_is_violated_in_bad() -> None:
    for e in minimal("grammar-agreement"):
        word = e.get("words")[e.get("critical")]
        bad = next(
            b for g, b in zip(e.text.split(), e.get("contrast").split(), strict=True) if g != b
        )
        plural = e.get("number") == "plural"
        assert plural == (
            word in ("are", "were", "have") or word == e.get("lemmas")[e.get("critical")]
        )
        assert bad.rstrip(".") != word


def test_attractors_have_the_other_number_and_stand_between() -> None:
    for e in minimal("grammar-agreement"):
        subject, critical = e.get("subject"), e.get("critical")
        words, lemmas, pos = e.get("words"), e.get("lemmas"), e.get("pos")
        between = [i for i in range(subject + 1, critical) if pos[i] == "NOUN"]
        assert len(between) == e.get("attractors"), e.text
        plural = e.get("number") == "plural"
        assert (words[subject].lower() != lemmas[subject]) == plural
        assert all((words[i] != lemmas[i]) != plural for i in between), e.text


def test_agreement_is_half_singular() -> None:
    numbers = Counter(e.get("number") for e in minimal("grammar-agreement"))
    assert abs(numbers["plural"] - 1000) < 140


@pytest.mark.parametrize("name", ["grammar-reflexives", "grammar-npi"])
def test_other_minimal_pairs_differ_at_the_critical_word(name: str) -> None:
    for e in minimal(name):
        good, bad = e.text.split(), e.get("contrast").split()
        differ = [i for i, (a, b) in enumerate(zip(good, bad, strict=True)) if a != b]
        assert len(differ) == (2 if e.get("kind") == "scope" else 1), e.text
        word = e.get("words")[e.get("critical")]
        assert good[differ[0]].rstrip(".") == word
        if name == "grammar-reflexives":
            assert word.endswith(("self", "selves"))
            cluster = [
                c for c in e.get("coreference") if (e.get("critical"), e.get("critical") + 1) in c
            ]
            assert cluster, e.text


def test_npi_is_licensed_in_good_and_not_in_bad() -> None:
    licensors = {"no", "not", "never", "few", "doubted"}
    for e in minimal("grammar-npi"):
        good, bad = words_of(e.text), words_of(e.get("contrast"))
        item = next(i for i, w in enumerate(good) if w in ("any", "ever"))
        assert licensors & set(good[:item]), e.text
        if e.get("kind") != "scope":
            assert not licensors & set(bad), e.get("contrast")


LISTS = ("grammar-facts", "grammar-objects", "grammar-word-pairs", "grammar-analogies")
DRAWN = [name for name in grammar.CORPUS_NAMES if name not in LISTS]


@pytest.mark.parametrize("name", DRAWN)
def test_splits_share_no_sentence(name: str) -> None:
    found: dict[str, set[str]] = {}
    for split in grammar.SIZES:
        corpus = made(name, split=split, size=60)
        numbers = name.startswith("grammar-number")  # of which each keeps to its split
        found[split] = {t for e in corpus for t in (e.get("words") if numbers else e.texts)}
        if name == "grammar-chains":  # all questions about the same statements are of one split
            found[split] = {t.rpartition(" So ")[0] for t in found[split]}
        if name == "grammar-licensing":  # and so are all sentences of a paradigm
            found[split] = {e.get("item") for e in corpus}
        if name == "grammar-reading":  # and stories, in both wordings; questions are asked of many
            found[split] = {t for e in corpus for t in (e.text, e.get("paraphrase"))}
        assert all(grammar.split_of(t) == split for t in found[split])
    assert not any(found[a] & found[b] for a, b in combinations(found, 2))


@pytest.mark.parametrize("name", grammar.CORPUS_NAMES)
def test_seed_settles_the_corpus(name: str) -> None:
    one, same, other = (grammar.corpus(name, split="test", size=30, seed=s) for s in (1, 1, 2))
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize("name", MINIMAL)
def test_minimal_pairs_are_distinct(name: str) -> None:
    assert len({e.text for e in minimal(name)}) == 2000
