"""What `self-similarity` found: its answer, measures and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn


class SelfSimilarityResult(Result):
    """How alike the occurrences of a word are after each layer, beyond any two words.

    Table `layers` (its first row, -1, is what enters the first layer: layer 0 of Ethayarajh 2019),
    each with bounds for all layers together: mean cosine of two occurrences of a word (`self`), of
    words of different texts (`random`), of a word with the mean of its sentence (`sentence`), and
    the share of the first principal component of a word's occurrences (`explained`) and of random
    words (`explained_random`); `self_adjusted`, `sentence_adjusted` and `explained_adjusted` are
    what is more than in random words; `shuffled` is `self_adjusted` of copies with shuffled
    weights, their mean. Table `words`: those whose self-similarity falls most and least from the
    first layer to the last (`fall`), and in how many texts they are.
    """

    @property
    def answer(self) -> str:
        """By how much self-similarity falls, and beside shuffled weights."""
        found = self.evidence()
        fall, beyond = found["self_similarity_fall"], found["fall_beyond_shuffled"]
        if beyond.excludes(0):
            surely = "Surely" if fall.excludes(0) else NOTHING_SURE
            shuffled = fall.value - beyond.value
            rest = f"with shuffled weights it {_way(shuffled)} by {abs(shuffled):.2f}"
        else:
            surely, rest = NOTHING_SURE, "not surely other than with shuffled weights"
        return (
            f"{surely}: from the output of the first layer to that of the last, adjusted "
            f"self-similarity {_moved(fall)}, over {self.facts['words']:,} words; {rest}. Counted "
            f"from the input (layer 0 of Ethayarajh 2019) it {_moved(found['fall_from_input'])}."
        )

    def measures(self) -> Sequence[Measure]:
        """Three similarities by layer, adjusted, and what is taken off."""
        table = self.tables["layers"]
        return line_measures(table[table["layer"] >= 0], _LINES, of="similarity", unit="cosine")

    def over_training(self) -> Sequence[Tracked]:
        """The fall over layers."""
        return [
            Tracked(
                "self_similarity_fall",
                "fall of self-similarity over layers",
                layers="similarity-self-adjusted",
                unit="cosine",
                gain=True,
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Lines over layers: what is adjusted, and what it was adjusted for."""
        by_name = {measure.name: measure for measure in self.measures()}
        adjusted = ("self-adjusted", "shuffled", "sentence-adjusted", "explained-adjusted")
        raw = ("self", "random", "sentence", "explained", "explained-random")
        return [
            lines_drawn(
                [by_name[f"similarity-{name}"] for name in adjusted],
                _LINES,
                self.about,
                title="How much words depend on their context",
                reading="Each less what random words give. Where the line of one word is low, its "
                "states differ from text to text. Bands hold for all layers together.",
            ),
            lines_drawn(
                [by_name[f"similarity-{name}"] for name in raw],
                _LINES,
                self.about,
                name="raw",
                title="Similarities before random words are taken off",
                reading="Where random words are as alike as occurrences of one word, similarity is "
                "not of the word.",
            ),
        ]


def _way(fall: float) -> str:
    return "rises" if fall < 0 else "falls"


def _moved(fall: Estimate) -> str:
    """`falls by 0.10 [0.05, 0.15]`, or `rises by …` where it falls by less than nothing."""
    if fall.value >= 0:
        return f"falls by {plain(fall, '.2f')}"
    rise = replace(fall, value=-fall.value, low=-fall.high, high=-fall.low)
    return f"rises by {plain(rise, '.2f')}"


_LINES = {
    "self_adjusted": Line(
        "Self-similarity beyond random words",
        "one word, adjusted",
        "High: a word has much the same state in every text.",
    ),
    "shuffled": Line(
        "Self-similarity beyond random words, with shuffled weights",
        "one word, shuffled weights",
        "What the same weights give without their order.",
    ),
    "sentence_adjusted": Line(
        "Similarity of a word to its sentence, beyond random words",
        "word and sentence, adjusted",
        "High: the words of a sentence have states that are alike.",
    ),
    "explained_adjusted": Line(
        "Share of the first component of a word's states, beyond random words",
        "first component, adjusted",
        "High: one vector could stand for a word in all texts.",
    ),
    "self": Line(
        "Self-similarity", "one word", "High: a word has much the same state in every text."
    ),
    "random": Line(
        "Similarity of random words",
        "random words",
        "High: any two words are alike, so that similarity says little.",
    ),
    "sentence": Line(
        "Similarity of a word to its sentence",
        "word and sentence",
        "High: the words of a sentence have states that are alike.",
    ),
    "explained": Line(
        "Share of the first component of a word's states",
        "first component",
        "High: one vector could stand for a word in all texts.",
    ),
    "explained_random": Line(
        "Share of the first component of random words' states",
        "first component, random words",
        "High: one vector could stand for any words.",
    ),
}
