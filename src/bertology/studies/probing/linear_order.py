"""Linear order: where do layers lose the order of words, and where do they find the structure?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.word_order import FEWEST, PLACE, TITLES
from bertology.arrays import Floats, Ints
from bertology.errors import CapabilityError
from bertology.parameters import pooling_of
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.best_of_many import picked_on_other_half
from bertology.stats.layer_orders import in_this_order, later_less_earlier
from bertology.stats.paired import bootstrap_weights
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probe_scores import (
    among_copies,
    controlled_gain,
    least_gain,
    rows_of_tasks,
)
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.shuffled_copies import COPIES, MODEL, ShuffledCopies
from bertology.studies.designs.tables import bounded, labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


_WINDOWS = "a window of the words around it"  # neighbours need no structure


class OrderScores:
    """One task: hits (N, layers) of the N sentences where the linear rule is wrong.

    The first of the layers is the input. `shuffled` are the hits of copies with shuffled weights
    (copies, N, layers), `windows` those of windows of words (N, reaches); `same` are shares
    (layers,) in sentences of the kind that trained.
    """

    def __init__(self, part: xr.Dataset, copies: Sequence[xr.Dataset], task: int) -> None:
        self.name = str(part["task"].to_numpy()[task])
        asked: Ints = part["counts"].to_numpy()[:, task].astype(np.int64)
        agree = part["agree"].to_numpy()[:, task].astype(bool)
        hits: Floats = part["hits"].to_numpy()[:, task].astype(np.float64)
        other = ~agree & (asked > 0)
        self.counts: Ints = asked[other]
        self.hits: Floats = hits[other]
        self.kinds = part["construction"].to_numpy()[other]
        self.shuffled: Floats = np.stack(
            [of["hits"].to_numpy()[:, task].astype(np.float64)[other] for of in copies]
        )
        self.windows: Floats = part["windows"].to_numpy()[:, task].astype(np.float64)[other]
        self.frequent, self.linear = (
            part[name].to_numpy()[:, task].astype(np.float64)[other]
            for name in ("frequent", "linear")
        )
        self.same: Floats = hits[agree].sum(axis=0) / max(asked[agree].sum(), 1)
        self.classes, self.trained = (
            int(part[name].to_numpy()[task]) for name in ("classes", "trained")
        )

    def shares(self, hits: Floats) -> Floats:
        """Of all questions: (…, layers)."""
        found: Floats = hits.sum(axis=-2) / max(self.counts.sum(), 1)
        return found

    def chance(self) -> Floats:
        """What a guess gets in each sentence."""
        found: Floats = self.counts / self.classes
        return found

    def best(self, hits: Floats) -> tuple[int, Floats]:
        """The best layer of hits (N, layers), and the hits (N,) of the cross-fitted best."""
        picked = picked_on_other_half(hits[:, None])
        found: Floats = np.take_along_axis(hits, picked, axis=1)[:, 0]
        return int(hits.sum(axis=0).argmax()), found

    def gains(self) -> dict[str, list[Floats]]:
        """Of the best layer over a guess, which is what claims state; over all else beside it."""
        _, picked = self.best(self.hits[:, 1:])
        bases = {
            "a guess": [self.chance()],
            "the word's most frequent answer": [self.frequent],
            # The place of words is the linear order itself.
            "the linear rule": [] if self.name == PLACE else [self.linear],
            "the input": [self.hits[:, 0]],
            "shuffled weights": [self.best(copy[:, 1:])[1] for copy in self.shuffled],
            _WINDOWS: list(self.windows.T),
        }
        return {name: [picked - base for base in of] for name, of in bases.items() if of}

    def rises(self) -> dict[str, list[Floats]]:
        """Of later layers over earlier ones, which is what claims state; and its controls."""
        own, *others = (-fall for fall in self.falls())
        late = self.late()
        return {
            "earlier layers": [own],
            "a guess": [late - self.chance()],
            "the rise in shuffled weights": [own - other for other in others],
            _WINDOWS: [late - base for base in self.windows.T],
        }

    def falls(self) -> list[Floats]:
        """The first third of the layers less the later ones: the model's, then the copies'."""
        every = np.concatenate([self.hits[None], self.shuffled])[:, :, 1:]
        first = _third(every.shape[2])
        return list(every[:, :, :first].mean(axis=2) - every[:, :, first:].mean(axis=2))

    def late(self) -> Floats:
        """The layers after the first third."""
        found: Floats = self.hits[:, 1 + _third(self.hits.shape[1] - 1) :].mean(axis=1)
        return found

    def fall(self, level: float) -> Estimate:
        """The fall over sentences, with that beyond shuffled weights as its control.

        Some copies fall more than others on any text, so that the control is over copies, too.
        """
        own, *others = self.falls()
        fall, beyond = (
            least_gain([of], self.counts, level=level)
            for of in (own, own - np.mean(others, axis=0))
        )
        beyond = among_copies(beyond, [float(of.sum()) / self.counts.sum() for of in others])
        return fall.with_controls({"the fall in shuffled weights": beyond})

    def by_order(self, found: Estimate, sign: float) -> Estimate:
        """A rise (or a fall, with a sign of -1), sure only in this order of the layers."""
        layers = sign * self.hits[:, 1:].sum(axis=0)
        rise = later_less_earlier(_third(len(layers)))
        return in_this_order(found, layers, rise)

    def depth(self, level: float, resamples: int, seed: int) -> Estimate:
        """At which share of the depth half of the fall is done, over resampled sentences."""
        hits, counts = self.hits, self.counts.astype(np.float64)
        weights = bootstrap_weights(len(hits), resamples, seed).astype(np.float64)
        shares = (weights @ hits) / (weights @ counts)[:, None]  # (resamples, layers)
        drawn = np.array([half_fallen(row) for row in shares])
        tail = (1 - level) / 2
        low, high = np.quantile(drawn, (tail, 1 - tail))
        value = half_fallen(hits.sum(axis=0) / counts.sum())
        return Estimate(value, min(value, low), max(value, high), len(hits), level, "sentences")


def half_fallen(shares: Floats) -> float:
    """The share of the depth at which a row (input, then layers) is half down from top to bottom.

    The input is at 0, the last layer at 1; between layers it is on a line.
    """
    top = int(shares.argmax())
    half = (shares[top] + shares[top:].min()) / 2
    below = [at for at in range(top + 1, len(shares)) if shares[at] <= half]
    if not below:
        return 1.0
    at = below[0]
    step = shares[at - 1] - shares[at]
    past = (shares[at - 1] - half) / step if step > 0 else 1.0
    return float((at - 1 + past) / (len(shares) - 1))


def _third(layers: int) -> int:
    return max(1, layers // 3)


Hits = NDArray[np.float32]
INPUT = -1  # as a layer: what enters the first one
_TREE = frozenset({"text", "words", "pos", "heads", "relations"})


class LinearOrderResult(Result):
    """What probes of each layer tell in constructions that did not train them.

    Table `layers`: for each task and layer (-1 is what enters the first one) the share of right
    answers in constructions where the linear rule is wrong (`accuracy`; for the place of words, in
    all constructions that did not train), in texts of the constructions that did train (`same`),
    and of shuffled weights (`shuffled`, the best of the copies); `tasks`: the best layer, picked on
    one half of the sentences and scored on the other, beside all baselines (`window`, the best of
    the windows of words around it); `constructions`: the
    same by construction, where the corpus names them. Bounds hold for all rows together.
    """

    strongest: ClassVar[Mapping[str, str]] = {"tasks": "gain", "layers": "accuracy"}

    @property
    def answer(self) -> str:
        """Whether order fades, and which structure is told."""
        said = []
        found = self.evidence()
        fall, depth = found.get("order_fall"), found.get("order_falls_at")
        if fall is not None and fall.surely_there:
            where = (
                "" if depth is None else f" (half of it by {100 * depth.value:.0f} % of the depth)"
            )
            said.append(
                f"The place of words fades after the first third of the layers{where}, by "
                f"{points(fall, '.0f')}, which is surely more than in shuffled weights"
            )
        tasks = self.tables["tasks"]
        sure = tasks[(tasks["task"] != PLACE) & (tasks["gain_low"] > 0)]
        told = [
            f"the {TITLES[str(row['task'])]} (layer {int(row['layer'])}, "
            f"{percent(of_row(row, ('accuracy', 'accuracy_low', 'accuracy_high')))})"
            for _, row in sure.iterrows()
        ]
        if told:
            said.append(f"Where the first such word is another, layers surely tell {listed(told)}")
        if not said:
            return (
                f"{NOTHING_SURE}: the place of words does not surely fade with layers, and no "
                "layer surely tells more of the main clause than linear order and neighbours do."
            )
        return ". ".join([*said, ""]).rstrip()

    def measures(self) -> Sequence[Measure]:
        """Right answers of each task by layer."""
        table = self.tables["layers"]
        return [
            Measure.of_column(
                rows,
                "accuracy",
                name=f"{task}-accuracy",
                title=f"Right answers in other constructions: {TITLES[str(task)]}",
                unit="% of words",
                scale=100.0,
                reading="High: the layer tells where words stand."
                if task == PLACE
                else "50 is chance; a probe that learnt the linear rule gets 0.",
            )
            for task, rows in table[table["layer"] >= 0].groupby("task", sort=False)
        ]

    def drawings(self) -> Sequence[Drawing]:
        """All tasks by layer; gains of the best layers; constructions."""
        measures = self.measures()
        rows = self.tables["tasks"]
        found = [
            drawings.profile(
                "layers",
                measures,
                self.about,
                title="Order and structure, told by probes of each layer",
                reading="Probes were trained where the first auxiliary or noun is that of the main "
                "clause, and are scored where it is not: 50 is chance, 0 the linear rule. The "
                "place of a word (of eight) is asked in the same sentences.",
                labels=[TITLES[m.name.removesuffix("-accuracy")] for m in measures],
            ),
            drawings.dots(
                "tasks",
                [
                    Dots.of_columns("right (%)", rows, "accuracy"),
                    Dots.of_columns("gain", rows, "gain", level=0.0),
                ],
                [TITLES[str(task)] for task in rows["task"]],
                self.about,
                title="What the best layer tells in other constructions",
                caption="For each task the share of right answers at its best layer, and the "
                "smallest gain over chance, the word's most frequent answer, the linear rule, the "
                "input, the words around it and shuffled weights. The layer was picked on one half "
                "of the sentences and scored on the other; intervals hold for all tasks together.",
                note="Gain: points over chance, words alone, the linear rule, the input, windows "
                "of words and shuffled weights, the smallest.",
            ),
        ]
        if "constructions" in self.tables:
            constructions = self.tables["constructions"]
            found.append(
                drawings.dots(
                    "constructions",
                    [Dots.of_columns("right (%)", constructions, "accuracy", level=50.0)],
                    [
                        f"{TITLES[str(r.task)]}: {r.construction}"
                        for r in constructions.itertuples()
                    ],
                    self.about,
                    title="The best layer, by construction",
                    caption="Right answers at the best layer, by construction. None of these "
                    "constructions trained the probe that is scored on it.",
                    note="Dashed: chance. The linear rule gets 0.",
                )
            )
        return found


@dataclass(frozen=True)
class LinearOrder(ShuffledCopies, Resampled):
    """Where do layers lose the order of words, and where do they find the structure?

    Method: probes are asked three things of a word's state after each layer: its place in the
    sentence (second to ninth word), whether it is the auxiliary of the main clause, whether it is
    the noun that is the subject of the main clause. The last two are asked of two words of a
    sentence: the right one, and another. Probes are trained on sentences where the first auxiliary
    (noun) is the right one, and scored on those where it is not, as in "the child that is asleep
    has a dog": whoever learnt "the first one" is always wrong there, who guesses is right in half.
    Sentences of a tree bank are told apart the same way, by their trees; the place of words is
    trained and scored on the same two sets. Baselines are chance, the word's most frequent answer,
    the linear rule, the input of the first layer, windows of one to four words on either side (what
    enters the first layer, without places, side by side: neighbours may tell without any
    structure), and ten copies of the model with its weights in random order. What claims state is
    told beyond a guess, or more by later layers than by earlier ones; all else is a control, and
    where the best layer does not surely beat one, nothing is concluded.

    Source: Lin, Tan and Frank (2019), "Open Sesame: Getting Inside BERT's Linguistic Knowledge".
    Limits: what a probe reads off need not be used by the model; and a probe may fail on new
    constructions for other reasons than a linear rule. Windows are read by linear probes: what only
    several neighbours together tell, or words further away, they do not know. Sentences whose
    words are cut off or have no piece of their own are left out, and words without a state counted.
    """

    needs: ClassVar[Needs] = Needs(fields=_TREE)
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = LinearOrderResult
    version: ClassVar[int] = 5  # bounds allow for rare answers that were not seen
    measured_version: ClassVar[int] = 2
    fewest: ClassVar[int] = 20
    copies: ClassVar[int] = COPIES  # chance makes some fall more than others

    pooling: str = pooling_of("a word")

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse tokenizers that do not say where words are, and pairs of texts."""
        super().check(encoder, corpus)
        if "text_b" in corpus.fields:
            raise CapabilityError(
                f"{corpus.name!r} has pairs of texts. Word order is asked of single sentences.",
                hint="Give a corpus with trees, such as grammar-order or ud-ewt.",
            )

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; training counts as much again."""
        return 2 * len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Right answers by text, task and layer."""
        import xarray as xr

        from bertology.annotated.states import States, word_states
        from bertology.annotated.windows import Windows
        from bertology.annotated.word_order import order_questions
        from bertology.train.probes.battery import EPOCHS, probed

        shown = self.shown(corpus)
        states = word_states(
            self.reader(encoder, part),
            shown,
            pooling=self.pooling,
            folder=context.states,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        asked = order_questions(shown, states, seed=self.seed)
        done = 0

        def advance(epochs: int) -> None:
            nonlocal done
            before, done = done, done + epochs
            context.advance(len(shown) * done // EPOCHS - len(shown) * before // EPOCHS)

        def hits(of: States, told: Callable[[int], None] = lambda epochs: None) -> Hits:
            """(texts, tasks, layers)"""
            found = probed(
                of,
                asked.units,
                asked.examples,
                asked.questions,
                asked.split,
                whole=False,
                seed=self.seed,
                device=encoder.device,
                advance=told,
            ).hits
            return np.pad(found, ((0, len(shown) - len(found)), (0, 0), (0, 0)))

        by_text = ("example", "task")
        return xr.Dataset(
            {
                "hits": ((*by_text, "layer"), hits(states, advance)),
                **(
                    {"windows": ((*by_text, "reach"), hits(Windows(states, shown)))}
                    if part == MODEL
                    else {}
                ),
                "counts": (by_text, asked.counts),
                "frequent": (by_text, asked.frequent),
                "linear": (by_text, asked.linear),
                "agree": (by_text, asked.agree),
                "classes": ("task", [question.classes for question in asked.questions]),
                "trained": ("task", asked.trained),
            },
            coords={
                "task": [question.name for question in asked.questions],
                "layer": [INPUT, *range(encoder.shape.layers)],
                "construction": (
                    "example",
                    [str(example.annotations.get("group", "")) for example in shown],
                ),
            },
            attrs={"missing": states.missing},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Accuracy by layer in other constructions; falls, rises and gains."""
        import pandas as pd

        part, copies = measured[MODEL], self.of_copies(measured)
        layers = [int(layer) for layer in part["layer"].to_numpy()]
        seen = [OrderScores(part, copies, task) for task in range(part.sizes["task"])]
        names = [one.name for one in seen]
        accuracy = self.means(
            rows_of_tasks([(one.hits, one.counts) for one in seen]), within=(0, 1), reach=1.0
        )
        table = labelled_table(
            {"task": names, "layer": layers},
            {
                "n": accuracy.n,
                **with_bounds("accuracy", accuracy, p=False),
                "same": np.stack([one.same for one in seen]),
                "shuffled": np.stack([one.shares(one.shuffled).max(axis=0) for one in seen]),
            },
        )
        tables = {
            "layers": table,
            "tasks": pd.DataFrame([self._task(one, layers, len(seen)) for one in seen]),
        }
        if len(by_kind := self._constructions(seen)):
            tables["constructions"] = by_kind
        evidence, reasons = self._evidence({one.name: one for one in seen})
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={
                "examples": int((part["counts"].to_numpy() > 0).any(axis=1).sum()),
                "missing": int(part.attrs["missing"]),
            },
        )

    def _task(self, one: OrderScores, layers: Sequence[int], families: int) -> dict[str, object]:
        """The best layer of a task, cross-fitted, beside its baselines."""
        best, picked = one.best(one.hits[:, 1:])
        score = self.means(
            per_item(picked, one.counts)[None], within=(0, 1), reach=1.0, families=families
        )
        gain = least_gain(
            [gain for of in one.gains().values() for gain in of],
            one.counts,
            level=self.level,
            families=families,
        )
        return {
            "task": one.name,
            "n": int(score.n[0]),
            "layer": layers[best + 1],
            "accuracy": score.value[0],
            "accuracy_low": score.simultaneous_low[0],
            "accuracy_high": score.simultaneous_high[0],
            "chance": 1 / one.classes,
            "frequent": float(one.shares(one.frequent[:, None])[0]),
            "linear": np.nan if one.name == PLACE else float(one.shares(one.linear[:, None])[0]),
            "input": float(one.shares(one.hits)[0]),
            "window": float(one.shares(one.windows).max()),
            "shuffled": float(one.shares(one.shuffled).max()),
            **bounded("gain", gain),
            "classes": one.classes,
            "trained": one.trained,
        }

    def _constructions(self, seen: Sequence[OrderScores]) -> pd.DataFrame:
        """The best layer of each task by construction; nothing where they have no names."""
        import pandas as pd

        names, rows = [], []
        for one in seen:
            if one.name == PLACE:
                continue
            _, picked = one.best(one.hits[:, 1:])
            for kind in sorted(set(one.kinds) - {""}):
                of = np.where(one.kinds == kind, one.counts, 0)
                if (of > 0).sum() >= FEWEST:
                    names.append((one.name, kind))
                    rows.append((picked[:, None], of))
        if not rows:
            return pd.DataFrame()
        means = self.means(rows_of_tasks(rows), within=(0, 1), reach=1.0)
        return pd.DataFrame(
            {
                "task": [task for task, _ in names],
                "construction": [kind for _, kind in names],
                "n": means.n,
                **with_bounds("accuracy", means, p=False),
            }
        )

    def _evidence(
        self, of: Mapping[str, OrderScores]
    ) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        """Falls of order, rises and gains of structure."""
        found: dict[str, Estimate | None] = {}
        reasons = {"": "not judged: too few sentences have two candidates in the wrong order"}
        if (place := of.get(PLACE)) is not None:
            found["order_fall"] = fall = place.by_order(place.fall(self.level), -1.0)
            if fall.surely_there:
                found["order_falls_at"] = place.depth(self.level, self.resamples, self.seed)
            else:
                reasons["order_falls_at"] = (
                    "not judged: the place of words does not surely fade beyond shuffled weights"
                )
        for name, one in of.items():
            if name == PLACE:
                continue
            for quantity, gains in {"gain": one.gains(), "rise": one.rises()}.items():
                key = f"{name.replace('-', '_')}_{quantity}"
                told = controlled_gain(gains, one.counts, level=self.level)
                found[key] = one.by_order(told, 1.0) if quantity == "rise" else told
        return found, reasons
