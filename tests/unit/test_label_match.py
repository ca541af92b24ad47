"""Labels of the data and of the model: matched where it is clear, refused where it is not."""

from __future__ import annotations

import pytest

from bertology.errors import CapabilityError
from bertology.model.label_match import LabelMatch, match_labels


def match(labels: str, names: str, *, ordered: bool = True) -> LabelMatch:
    named = dict(enumerate(names.split()))
    return match_labels(named, len(named), labels.split(), ordered=ordered, model="m")


@pytest.mark.parametrize(
    ("labels", "names", "order", "by"),
    [
        ("negative positive", "POSITIVE Negative", (1, 0), "name"),
        ("entailment non-entailment", "not_entailment entailment", (1, 0), "name"),
        ("a b c", "c x a", (2, 1, 0), "name"),
        ("0 1", "negative positive", (0, 1), "order"),
        ("1 2 3", "LABEL_0 LABEL_1 LABEL_2", (0, 1, 2), "order"),
        ("negative positive", "LABEL_0 LABEL_1", (0, 1), "order"),
        ("1 2", "2 1", (1, 0), "name"),
    ],
)
def test_clear_ones(labels: str, names: str, order: tuple[int, ...], by: str) -> None:
    found = match(labels, names)
    assert (found.order, found.by) == (order, by)
    assert found.pairs[0] == (labels.split()[0], names.split()[order[0]])


@pytest.mark.parametrize(
    ("labels", "names", "ordered"),
    [
        ("good poor", "negative positive", False),
        ("good poor", "negative positive", True),  # both have names, and these differ
        ("good poor", "LABEL_0 LABEL_1", False),  # the alphabet's order means nothing
        ("a b c", "a x y", True),
        ("0 1", "1 2", True),  # numbers that contradict each other
    ],
)
def test_what_is_not_clear_is_refused(labels: str, names: str, ordered: bool) -> None:
    with pytest.raises(CapabilityError, match="Which label is which"):
        match(labels, names, ordered=ordered)


def test_the_refusal_proposes_both_ways() -> None:
    with pytest.raises(CapabilityError) as refused:
        match("good poor", "negative positive", ordered=False)
    hint = str(refused.value.hint)
    assert "--labels good=positive,poor=negative" in hint
    assert "--labels good=negative,poor=positive" in hint
