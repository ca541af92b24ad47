"""The tree of one sentence, with and without annotation, and its figure."""

from __future__ import annotations

import io
from typing import Any

import pytest

import bertology as bt
import planted_impact
import planted_trees as planted
from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.report.figures import TreeArcs, tree_arcs

TEXT = "the dog often sees now a ball"
HEADS = (1, 3, 3, -1, 3, 6, 3)


def test_a_text_has_the_tree_of_a_head() -> None:
    encoder = planted.encoder(planted.model())
    found = bt.sentence_tree(encoder, TEXT, by=planted.TREE, tree="to-head")
    assert found.words == tuple(TEXT.split())
    assert found.heads == HEADS
    assert found.annotated is None
    rooted = bt.sentence_tree(encoder, TEXT, by=planted.TREE, tree="to-head-rooted", root=3)
    assert rooted.heads == HEADS
    assert bt.sentence_tree(encoder, TEXT, by=1).source == "the mean of layer 1"
    assert bt.sentence_tree(encoder, TEXT).source == "the mean of all heads"


def test_an_example_has_its_annotated_tree_above() -> None:
    example = planted.corpus(1)[0]
    encoder = planted.encoder(planted.model())
    found = bt.sentence_tree(encoder, example, by=planted.TREE, tree="to-head-rooted")
    assert found.annotated == found.heads == tuple(example.get("heads")[:-1])  # but the full stop
    shown = found.plot()
    assert {"annotated", "head 1.2"} <= {text.get_text() for text in shown.axes[0].texts}
    for kind in ("svg", "pdf"):
        shown.savefig(io.BytesIO(), format=kind)


def test_impact_gives_trees_too() -> None:
    encoder = planted_impact.encoder(planted_impact.model())
    text = planted_impact.corpus(1)[0].text
    found = bt.sentence_tree(encoder, text, by="distance", tree="projective")
    assert list(found.heads) == planted_impact.HEADS
    assert found.source == "impact (distance)"


@pytest.mark.parametrize("by", [(9, 0), (0, 9), (0, 1, 2), 7, "some", ("a", "b")])
def test_heads_that_are_not_there_are_refused(by: Any) -> None:
    with pytest.raises(ParameterError, match="'by' parameter of sentence_tree"):
        bt.sentence_tree(planted.encoder(planted.model()), TEXT, by=by)


def test_other_mistakes_are_told() -> None:
    encoder = planted.encoder(planted.model())
    with pytest.raises(UnknownNameError, match="tree"):
        bt.sentence_tree(encoder, TEXT, tree="binary")
    with pytest.raises(ParameterError, match="root"):
        bt.sentence_tree(encoder, TEXT, tree="to-head-rooted")
    with pytest.raises(DataError, match="two words"):
        bt.sentence_tree(encoder, "dog")
    with pytest.raises(ParameterError, match="heads"):
        tree_arcs(["a", "b"], above=TreeArcs("annotated", [1]), title="")
    with pytest.raises(ParameterError, match="words"):
        tree_arcs(["a", "b"], title="")


def test_an_arc_that_points_the_other_way_is_right_only_where_direction_does_not_matter() -> None:
    def colours(*, directed: bool) -> set[str]:
        figure = tree_arcs(
            ["a", "b", "c"],
            above=TreeArcs("annotated", [1, -1, 1]),
            below=TreeArcs("found", [-1, 0, 1], directed=directed),
            title="",
        )
        return {str(patch.get_linestyle()) for patch in figure.axes[0].patches}

    assert len(colours(directed=True)) == 2  # whole lines and broken ones
    assert len(colours(directed=False)) == 1
