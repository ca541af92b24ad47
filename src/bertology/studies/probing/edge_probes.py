"""Edge probes: which layers tell parts of speech, phrases, relations, entities, roles?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from bertology.annotated.probed_tasks import PROBED
from bertology.annotated.word_labels import ProbedTask
from bertology.errors import CapabilityError, ParameterError
from bertology.parameters import parameter
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.probe_scores import TaskScores, middle_over_ends
from bertology.studies.designs.probes import Probing, ProbingResult
from bertology.studies.designs.shares import ratio_values

if TYPE_CHECKING:
    from bertology.annotated.probe_questions import ProbeQuestions
    from bertology.annotated.states import States
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.studies.study import Context

_SYNTAX = ("relation", "parent-phrase", "arc-relation", "arc")
"""The first that was asked tells of layers."""


class EdgeProbesResult(ProbingResult):
    """What probes read off the states after each layer; tables as all probing studies have them."""


@dataclass(frozen=True)
class EdgeProbes(Probing):
    """Which layers tell parts of speech, phrases, relations, entities, roles and referents?

    Method: a small classifier (a probe) is trained on the state of a word after each layer (of a
    span of words: the mean of their states), or on those of two and their product, and scored on
    sentences that did not train it (of every ten, two are scored and one decides when training
    stops and how large weights may be). Beside each stands a control task, in which every word type
    has one label at random: `selectivity` is what the probe gets beyond it. The bits that labels
    take when probes trained on growing portions code the next portion say how easily the answer is
    read off. The words' most frequent label, the input of the first layer, and the same model with
    its weights in random order are baselines; the best layer counts only if it beats all of them.
    Parents are those of the dependency tree; phrases those of a tree of constituents. Of properties
    of arguments (proto-roles) each is a yes-or-no question, and right answers are added up. Probes
    of all layers and tasks are trained together. Pairs may be asked of attention instead (`given`):
    for each head of the layer, how much the one attends to the other, both ways; before the first
    layer there is none, and probes only guess. With `spans` attentive, a span is the sum of its
    words' states, weighed by softmax(v · state); each probe learns its own v, one for each span of
    a pair. It starts at 0, which is the mean, from the best linear probe of means, and leaves it
    only if held-out sentences are told better. With spans of one word both are the same.

    Source: Tenney et al. (2019) and Liu et al. (2019) for the tasks, Hewitt and Liang (2019) for
    control tasks, Voita and Titov (2020) for bits. Limits: what a probe reads off need not be used
    by the model. Spans with words that are cut off or have no piece of their own are left out, and
    counted. Answers that no training sentence has count as wrong.
    """

    version: ClassVar[int] = 7  # bounds allow for rare answers that were not seen
    offers: ClassVar[Mapping[str, ProbedTask]] = PROBED
    result_type: ClassVar[type[Result]] = EdgeProbesResult

    seeds: int = parameter(
        1, "Draw control tasks and orders of examples so many times; scores are means.", minimum=1
    )
    given: str = parameter(
        "states",
        "What probes see of a layer: states, or attention between both of a pair by all heads.",
        choices=("states", "attention"),
    )

    spans: str = parameter(
        "mean",
        "Of a span of words: the mean of their states, or a sum weighed as each probe learns it.",
        choices=("mean", "attentive"),
    )

    @property
    def runs(self) -> int:
        """As many as are asked for."""
        return self.seeds

    @property
    def attentive(self) -> bool:
        """As it is asked for."""
        return self.spans == "attentive"

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse to ask attention what is not about pairs, and to weigh what cannot be weighed."""
        if self.attentive and (self.given == "attention" or self.probe == "hidden"):
            where = "probes see attention" if self.probe == "linear" else "probes have hidden units"
            raise ParameterError("spans", "EdgeProbes", f"be mean where {where}", self.spans)
        if self.given == "attention":
            encoder.require("patterns")
            for task in self.tasks:
                if task in self.offers and not self.offers[task].pairs:
                    known = ", ".join(name for name, one in self.offers.items() if one.pairs)
                    raise CapabilityError(
                        f"The task {task!r} is about single words; attention is between two.",
                        hint=f"Ask one of {known}, or leave --given out.",
                    )
        super().check(encoder, corpus)

    def asked(self, corpus: Corpus) -> list[ProbedTask]:
        """The tasks given, or all that the corpus annotates; of attention, those of pairs."""
        return [one for one in super().asked(corpus) if one.pairs or self.given == "states"]

    def states(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> States:
        """States of words; where attention is asked, only which words there are."""
        from bertology.annotated.pair_attention import WordPlaces

        if self.given == "states":
            return super().states(encoder, corpus, part, context)
        return WordPlaces(encoder, self.shown(corpus))

    def questions(
        self, encoder: Encoder, corpus: Corpus, part: str, context: Context
    ) -> tuple[States, ProbeQuestions]:
        """The questions, and states or attention of what they are about."""
        from bertology.annotated.pair_attention import pair_attention

        words, asked = super().questions(encoder, corpus, part, context)
        if self.given == "states":
            return words, asked
        attention, spans = pair_attention(
            self.reader(encoder, part),
            self.shown(corpus),
            words,
            asked.units,
            asked.examples,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        return attention, replace(asked, units=spans)

    def unjudged(self) -> str:
        """Claims are about states."""
        if self.given == "attention":
            return "not judged: it is about states, and probes were given attention"
        return super().unjudged()

    def judged(self, of: Mapping[str, TaskScores]) -> dict[str, Estimate | None]:
        """What distance in the tree costs; where syntax is told best, by states."""
        if self.given == "attention":
            return {}
        found: dict[str, Estimate | None] = {}
        for kind in ("-phrase", ""):  # trees of phrases are what the paper says it of
            near, far = f"parent{kind}", f"great-grandparent{kind}"
            if {near, far} <= set(of):
                found["distant_parent_gain"] = self._distance(of[near], of[far])
                break
        if "role" not in of and "frame-element" in of:
            one = of["frame-element"]
            found["role_gain"] = one.gain(level=self.level)
        for name in _SYNTAX:
            if name in of:
                one = of[name]
                if one.told(level=self.level):
                    found["middle_over_ends"] = middle_over_ends(
                        one.hits[:, 1:], one.counts, level=self.level
                    )
                break
        return found

    def _distance(self, near: TaskScores, far: TaskScores) -> Estimate | None:
        """How much less of what frequent labels leave open is told of the far ancestor.

        Where nothing is surely told of the near one, there is nothing to lose.
        """
        sides = [(one.best()[1] - one.frequent, one.counts - one.frequent) for one in (far, near)]
        if not near.told(level=self.level) or not all(left.sum() > 0 for _, left in sides):
            return None
        lost, kept = (ratio_values(gained, left) for gained, left in sides)
        found = self.means((lost - kept)[None], within=(-2, 2), reach=1.0).estimate(0)
        return None if found is None else found.counting("sentences")
