"""The fragments: labels proved again from the English, and words that tell nothing of them."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from bertology.data import Corpus, Example, load_corpus
from bertology.data.grammar import fragments
from bertology.data.grammar.fragments import COMPARISONS, FRAGMENTS

NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5}
World = dict[tuple[str, str], bool]


@pytest.fixture(scope="module")
def pairs() -> Corpus:
    return load_corpus("grammar-fragments", split="train", limit=6300)


def sentences(text: str) -> list[str]:
    return [s.strip() for s in text.split(".") if s.strip()]


def listed(text: str) -> list[str]:
    return re.split(r", | and | or ", text)


def visits(sentence: str, world: World, people: list[str], places: list[str]) -> bool:
    """Whether a sentence about visits is true in a world: the English, read word by word."""

    def all_so(sentence: str) -> bool:
        return visits(sentence, world, people, places)

    def at(who: str, where: str) -> bool:
        return world[who, where]

    inner = re.fullmatch(r"[Ii]t is not true that (.*)", sentence)
    if inner:
        return not all_so(inner[1])
    if found := re.fullmatch(r"If (.*), then (.*)", sentence):
        return not all_so(found[1]) or all_so(found[2])
    if found := re.fullmatch(r"Everyone who visited (.*) also visited (.*)", sentence):
        return all(at(p, found[2]) for p in people if at(p, found[1]))
    if found := re.fullmatch(r"(Everyone|Someone|Nobody|Not everyone) visited (.*)", sentence):
        did = [at(p, found[2]) for p in people]
        so = {"Everyone": all(did), "Someone": any(did), "Nobody": not any(did)}
        return so.get(found[1], not all(did))
    if found := re.fullmatch(
        r"(\w+) visited (at least|at most|more than|fewer than|exactly) (\w+) places", sentence
    ):
        n, asked = sum(at(found[1], p) for p in places), NUMBERS[found[3]]
        return {
            "at least": n >= asked, "at most": n <= asked, "more than": n > asked,
            "fewer than": n < asked, "exactly": n == asked,
        }[found[2]]  # fmt: skip
    if found := re.fullmatch(r"(\w+) visited only (.*)", sentence):
        mine = listed(found[2])
        return all(at(found[1], p) == (p in mine) for p in places)
    if found := re.fullmatch(r"(\w+) did not visit (?:both|all of) (.*)", sentence):
        return not all(at(found[1], p) for p in listed(found[2]))
    if found := re.fullmatch(r"(\w+) did not visit (.*)", sentence):
        return not at(found[1], found[2])
    found = re.fullmatch(r"(\w+) visited (.*)", sentence)
    assert found, sentence
    did = [at(found[1], p) for p in listed(found[2])]
    return any(did) if " or " in found[2] else all(did)


def label_of(held: list[bool]) -> int:
    assert held  # the premises are possible
    return 0 if all(held) else 1 if any(held) else 2


def brute_force(example: Example) -> int | None:
    """The label over all small worlds, or None where these are too many to count."""
    assert example.text_b is not None
    said, asked = sentences(example.text), sentences(example.text_b)[0]
    whole = f"{example.text} {example.text_b}"
    places = sorted(set(re.findall(r"the \w+", whole)))
    people = sorted(
        set(re.findall(r"\b[A-Z]\w+(?= (?:visited|did))", whole))
        - {"Everyone", "Someone", "Nobody"}
    )
    if example.get("group") == "quantifier":
        # What is linked to the place that is asked about, and nothing else, can matter.
        linked = {p for p in places if p in asked}
        for _ in said:
            linked |= {p for s in said if any(q in s for q in linked) for p in places if p in s}
        places = sorted(linked)
        said = [s for s in said if any(p in s for p in places)]
        people = [*people, "a", "b"]
    if example.get("group") == "counting":
        who = asked.split()[0]
        said = [s for s in said if s.startswith(who)]
        people, places = [who], [*(p for p in places if p in said[0]), *"abcdef"]
    keys = list(product(people, places))
    if example.get("group") in ("negation", "boolean", "conditional"):
        # Only what is spoken of can matter.
        spoken = [
            re.findall(r"(\w+) (?:visited|did not visit) ((?:[^.]*?))(?:, then|$)", s)
            for s in [*said, asked]
        ]
        who_where = {
            (w, p) for found in spoken for w, ps in found for p in re.findall(r"the \w+", ps)
        }
        keys = sorted(who_where)
    if len(keys) > 14:
        return None
    held = []
    for truth in product((False, True), repeat=len(keys)):
        world = dict(zip(keys, truth, strict=True))
        if all(visits(s, world, people, places) for s in said):
            held.append(visits(asked, world, people, places))
    return label_of(held)


def ordered(example: Example) -> int:
    assert example.text_b is not None
    down = {less: more for more, less in COMPARISONS}

    def read(sentence: str) -> tuple[str, str]:
        one, word, other = re.fullmatch(r"(\w+) is (\w+) than (\w+)", sentence).groups()  # type: ignore[union-attr]
        return (other, one) if word in down else (one, other)

    said = [read(s) for s in sentences(example.text)]
    asked = read(sentences(example.text_b)[0])
    people = sorted({p for pair in said for p in pair})
    held = []
    for ranks in product(range(len(people)), repeat=len(people)):
        rank = dict(zip(people, ranks, strict=True))
        if all(rank[a] > rank[b] for a, b in said):
            held.append(rank[asked[0]] > rank[asked[1]])
    return label_of(held)


def generalised(example: Example) -> int:
    """All sets of up to four kinds of people, each with some of the adjectives and verbs."""
    form = re.compile(r"(Every|Some|No|Not every) (.*)")

    def read(text: str) -> tuple[str, list[str], list[str]]:
        determiner, rest = form.fullmatch(text.rstrip(".")).groups()  # type: ignore[union-attr]
        words = rest.split()
        did = [words[-1]] if "and" not in words else [words[-3], words[-1]]
        return determiner, words[: -1 if len(did) == 1 else -3], did

    first, second = read(example.text), read(str(example.text_b))
    noun = first[1][-1]
    features = sorted({*first[1], *first[2], *second[1], *second[2]} - {noun})
    choices = product((False, True), repeat=len(features))
    kinds = [{f for f, has in zip(features, some, strict=True) if has} | {noun} for some in choices]
    held = []
    worlds = [list(w) for n in range(1, 5) for w in combinations(kinds, n)]
    for world in worlds:

        def true(
            sentence: tuple[str, list[str], list[str]], world: list[set[str]] = world
        ) -> bool | None:
            determiner, of, did = sentence
            those = [set(did) <= one for one in world if set(of) <= one]
            if not those:
                return None  # nobody is spoken of
            return {"Every": all(those), "Some": any(those), "No": not any(those)}.get(
                determiner, not all(those)
            )

        if true(first) and true(second) is not None:
            held.append(bool(true(second)))
    return label_of(held)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_labels_are_so_in_every_small_world(pairs: Corpus, fragment: str) -> None:
    check = {"comparative": ordered, "monotonicity": generalised}.get(fragment, brute_force)
    few = {"monotonicity": 20, "comparative": 40}.get(fragment, 60)
    tried: Counter[int] = Counter()
    for example in (e for e in pairs if e.get("group") == fragment):
        if fragment == "comparative" and example.get("steps") > 3:
            continue
        found = check(example)
        if found is not None:
            assert found == example.label, example
            tried[found] += 1
        if sum(tried.values()) >= few:
            break
    assert min(tried[label] for label in range(3)) >= few // 5


def test_the_checker_agrees_with_counting_worlds() -> None:
    facts = [("is", i) for i in range(5)]
    space: fragments.SpaceName = ("facts", 5)
    two = ("least", 2, *facts)
    assert fragments.verdict(space, (facts[0], facts[3]), two) == fragments.ENTAILMENT
    assert fragments.verdict(space, (facts[0],), two) == fragments.NEUTRAL
    alone = ("not", ("any", *facts[1:]))
    assert fragments.verdict(space, (alone,), two) == fragments.CONTRADICTION
    order: fragments.SpaceName = ("order", 3)
    assert fragments.verdict(order, (("is", (0, 1)), ("is", (1, 2))), ("is", (0, 2))) == 0
    assert fragments.verdict(order, (("is", (0, 1)), ("is", (2, 1))), ("is", (0, 2))) == 1
    with pytest.raises(ValueError, match="no world satisfies"):
        fragments.verdict(space, (facts[0], ("not", facts[0])), two)


def bags(examples: list[Example]) -> np.ndarray:
    """Counts of each word of the premise and of each word of the hypothesis."""
    places: dict[str, int] = {}
    rows = []
    for e in examples:
        texts = zip("ph", e.texts, strict=False)
        words = [f"{side} {w}" for side, t in texts for w in re.findall(r"\w+", t.lower())]
        rows.append(Counter(places.setdefault(word, len(places)) for word in words))
    table = np.zeros((len(rows), len(places)))
    for i, row in enumerate(rows):
        table[i, list(row)] = list(row.values())
    return table


def learnt(x: np.ndarray, examples: list[Example]) -> float:
    """Accuracy of ridge regression on the labels, learnt on one half and scored on the other."""
    x = np.hstack([x, np.ones((len(x), 1))])
    y = np.eye(3)[[int(e.label or 0) for e in examples]]
    half = len(x) // 2
    inner = x[:half].T @ x[:half] + 10 * np.eye(x.shape[1])
    weights = np.linalg.solve(inner, x[:half].T @ y[:half])
    return float((np.argmax(x[half:] @ weights, 1) == np.argmax(y[half:], 1)).mean())


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_words_do_not_tell_the_label(pairs: Corpus, fragment: str) -> None:
    examples = [e for e in pairs if e.get("group") == fragment]
    n = len(examples) // 2
    # A third is chance; 450 test pairs, and three standard errors above it.
    assert learnt(bags(examples), examples) < 1 / 3 + 3 * np.sqrt(2 / 9 / n)


@pytest.mark.parametrize("fragment", [f for f in FRAGMENTS if f != "monotonicity"])
def test_frequent_words_of_both_sentences_together_tell_little(
    pairs: Corpus, fragment: str
) -> None:
    """With "or" or "not all" in the premise, "not" in the hypothesis once told most of it."""
    examples = [e for e in pairs if e.get("group") == fragment]
    sides = []
    for side in range(2):
        table = bags([Example(e.id, e.texts[side]) for e in examples])
        sides.append(table[:, (table > 0).mean(0) > 0.1])
    crossed = np.einsum("ni,nj->nij", *sides).reshape(len(examples), -1)
    assert learnt(crossed, examples) < 0.45


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_function_words_are_the_same_for_all_labels(pairs: Corpus, fragment: str) -> None:
    """Counts of "not", "or", "every" …: their means differ by chance at most."""
    examples = [e for e in pairs if e.get("group") == fragment]
    words = (
        "not",
        "or",
        "every",
        "some",
        "no",
        "everyone",
        "someone",
        "nobody",
        "only",
        "if",
        "and",
    )
    for side in range(2):
        counts = np.array(
            [[e.texts[side].lower().split().count(w) for w in words] for e in examples]
        )
        labels = np.array([e.label for e in examples])
        means = np.array([counts[labels == label].mean(0) for label in range(3)])
        error = counts.std(0) * np.sqrt(2 / (len(examples) / 3))
        assert (np.ptp(means, axis=0) <= 4.5 * error + 1e-9).all()


def test_fragments_are_balanced_and_the_same_for_a_seed(pairs: Corpus) -> None:
    counts = Counter((e.get("group"), e.label) for e in pairs)
    assert set(counts.values()) == {300}
    for fragment in FRAGMENTS:
        steps = {e.get("steps") for e in pairs if e.get("group") == fragment}
        assert min(steps) == 1 or fragment == "boolean"
        assert len(steps) >= 3
    again = load_corpus("grammar-fragments", split="train", limit=42, seed=1)
    assert (
        again.fingerprint
        == load_corpus("grammar-fragments", split="train", limit=42, seed=1).fingerprint
    )
    assert (
        again.fingerprint
        != load_corpus("grammar-fragments", split="train", limit=42, seed=2).fingerprint
    )
