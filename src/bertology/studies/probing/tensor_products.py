"""Tensor products: under which scheme of roles is a sentence a sum of its words?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.annotated.role_schemes import SCHEMES, TREE
from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.layer_orders import mirrored
from bertology.stats.least_means import least_means
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probes import INPUT
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

_FEWEST = 10  # sentences that are fitted or scored, and half as many that choose
_BAG = "bag-of-words"
_CONTROL = "its roles, dealt at random"


class TensorProductsResult(Result):
    """How well sentences are approximated by words bound to roles, by scheme.

    Table `layers`: for each scheme and layer the `error` (the share of the sentences' variance that
    is left, on sentences that did not train), that of the scheme's control, and the `gain` over it;
    `schemes`: the same as means over all layers, how many roles there are, and the share of words
    whose role is too rare to be told from other rare ones, and by how much more is left than by
    trees (`over_trees`); `pairs` and `layer_pairs`: the error of one scheme less that of another.
    Layer -1 is what enters the first one, where sentences differ there. Bounds hold for all rows of
    a table together.
    """

    strongest: ClassVar[Mapping[str, str]] = {"schemes": "-error", "layers": "gain"}

    @property
    def answer(self) -> str:
        """The scheme that leaves least, and how trees compare with the best of the others."""
        best = self.shown("schemes").iloc[0]
        left = percent(of_row(best, ("error", "error_low", "error_high")))
        trees = self.evidence()["tree_lead"]
        if trees.surely_there:
            end = f"trees surely leave less than any other roles, by {points(trees)}"
        elif trees.high < 0:
            more = points(mirrored(trees))
            end = f"trees surely leave more than the best of other roles, by {more}"
        else:
            end = f"whether trees leave less than all other roles is not sure (by {points(trees)})"
        return (
            f"The scheme that leaves least unexplained is {best['title']}, with {left} of the "
            f"variance of sentences, in the mean over layers; {end}."
        )

    def measures(self) -> Sequence[Measure]:
        """The error of each scheme by layer, and its gain over its control."""
        found, table = [], self.tables["layers"]
        for name, rows in table[table["layer"] >= 0].groupby("scheme", sort=False):
            title = SCHEMES[str(name)].title
            found.append(
                Measure.of_column(
                    rows,
                    "error",
                    name=f"{name}-error",
                    title=f"What words bound to roles leave unexplained: {title}",
                    unit="% of the variance of sentences",
                    scale=100.0,
                    reading="0: sentences are sums of words in these roles.",
                )
            )
            if name != _BAG:
                found.append(
                    Measure.of_column(
                        rows,
                        "gain",
                        name=f"{name}-gain",
                        title=f"What it tells which word has which role: {title}",
                        unit="points of variance",
                        scale=100.0,
                        middle=0.0,
                        reading="Above 0: less is left than with the same roles at random.",
                    )
                )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Errors and gains by layer; schemes over all layers."""
        by_name = {m.name: m for m in self.measures()}
        order = [TREE, *(name for name in SCHEMES if name != TREE)]  # it has the loudest colour
        bound = [name for name in order if name != _BAG]
        rows = self.tables["schemes"]
        return [
            drawings.profile(
                "errors",
                [by_name[f"{name}-error"] for name in order],
                self.about,
                title="What sums of words in roles leave of a sentence",
                reading="Low: the layer's vector of a sentence is nearly such a sum.",
                labels=[SCHEMES[name].title for name in order],
            ),
            drawings.profile(
                "gains",
                [by_name[f"{name}-gain"] for name in bound],
                self.about,
                title="What it matters which word has which role",
                reading="The error with the same roles dealt to the words of each sentence at "
                "random, less the error. At 0 roles tell no more than which of them there are, "
                "such as how long the sentence is.",
                labels=[SCHEMES[name].title for name in bound],
            ),
            drawings.dots(
                "schemes",
                [
                    Dots.of_columns("left (% of variance)", rows, "error", bars="control"),
                    Dots.of_columns("gain (points)", rows, "gain", level=0.0),
                    Dots.of_columns("more than trees (points)", rows, "over_trees", level=0.0),
                ],
                rows["title"],
                self.about,
                title="Schemes of roles, means over layers",
                caption="For each scheme the share of the variance of sentences that is left, as a "
                f"mean over layers (grey bars: {_CONTROL}), the difference between the two, and by "
                "how much more the scheme leaves than trees do. Intervals are over test sentences "
                "and hold for all schemes together.",
                note="Grey bars: the same roles, dealt to the words of each sentence at random. "
                "Gain: by how much less the scheme leaves.",
            ),
        ]


@dataclass(frozen=True)
class TensorProducts(Resampled):
    """Under which scheme of roles is the vector of a sentence a sum of its words?

    Method: the vector of a sentence after each layer is approximated by a tensor product: every
    word (its row in the model's table of embeddings, which knows no context) is bound to a role by
    an outer product, products are averaged, and a linear map, fitted by least squares with a
    penalty, leads to the layer. Roles are places from the left, from the right, from both ends,
    none (bag of words), or paths from the root of the dependency tree. A role's vector has a part
    that all roles share and one of its own. Of every ten sentences seven are fitted, one chooses
    penalty and parts, and two are scored: the error is the share of their variance that is left. A
    scheme with many roles must not win by their number: its control has the same roles in each
    sentence, dealt to the words at random.

    Source: McCoy et al. (2019), and Jawahar et al. (2019), who approximate the state of [CLS], take
    frozen word embeddings as fillers, and find trees best by very small differences. Limits: their
    trees are binary trees of phrases, and their roles' vectors are learnt with gradients, which
    leaves more on held-out sentences than least squares do. Words that are cut off or have no
    piece of their own are left out, and counted.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "words", "heads"}))
    finds_words: ClassVar[bool] = True
    version: ClassVar[int] = 3  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = TensorProductsResult
    fewest: ClassVar[int] = 50

    vector: str = parameter(
        "first",
        "The vector of a sentence: the state of its first token ([CLS]), or the mean of its words.",
        choices=("first", "mean"),
    )
    deals: int = parameter(3, "How often roles are dealt at random.", minimum=1, maximum=100)

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One for each scheme."""
        return list(SCHEMES)

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; fitting counts as much again."""
        return 2 * len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Squared errors of test sentences by layer, of the scheme and of its control."""
        import xarray as xr

        from bertology.annotated.probe_questions import parts_of_texts
        from bertology.annotated.role_schemes import dealt, numbered
        from bertology.annotated.sentence_vectors import sentence_vectors, word_fillers
        from bertology.annotated.states import word_states
        from bertology.train.probes.tensor_products import OWN, Sentences, tensor_products

        shown = self.shown(corpus)
        first = self.vector == "first"
        states = word_states(
            encoder,
            shown,
            pooling="tokens" if first else "mean",
            folder=context.states,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        fillers = word_fillers(encoder, shown)
        there = np.array([len(words) > 0 for words in fillers.words])
        split = np.where(there, parts_of_texts(shown), -1)
        counts = [int((split == part).sum()) for part in range(3)]
        if min(counts[0], counts[2]) < _FEWEST or counts[1] < _FEWEST // 2:
            raise DataError(
                f"Of {shown.name!r} {counts[0]} sentences would be fitted, {counts[1]} would "
                f"choose, and {counts[2]} would be scored; that is too few.",
                hint="Give more text with --limit; the same text twice counts once.",
            )
        given = Sentences(
            fillers.vectors, fillers.words, sentence_vectors(states, first=first), split
        )
        named = [
            [roles[place] for place in places]
            for places, roles in zip(fillers.places, map(SCHEMES[part].roles, shown), strict=True)
        ]
        known = numbered(named, split == 0)
        tries = [known.roles]
        if part != _BAG:
            tries += [dealt(known.roles, self.seed + deal) for deal in range(self.deals)]
        done, steps = 0, len(OWN) * len(tries)

        def advance(some: int) -> None:
            nonlocal done
            before, done = done, done + some
            context.advance(len(shown) * done // steps - len(shown) * before // steps)

        device = encoder.device if encoder.device.type == "cuda" else "cpu"  # others lack doubles
        found = [tensor_products(given, own, device=device, advance=advance) for own in tries]
        errors = np.stack([one.errors for one in found])
        # Without roles there is nothing to deal.
        control = errors[1:].mean(0) if len(tries) > 1 else np.full_like(errors[0], np.nan)
        return xr.Dataset(
            {
                "error": (("example", "layer"), errors[0]),
                "control": (("example", "layer"), control),
                "total": (("example", "layer"), given.totals()),
                "own": ("layer", found[0].own),
                "penalty": ("layer", found[0].penalty),
            },
            coords={"layer": [INPUT, *range(encoder.shape.layers)]},
            attrs={
                "roles": known.count,
                "rare": known.rare,
                "missing": fillers.missing,
                "empty": int((~there).sum()),
                "unseen": float((~np.isin(given.words_of(2), given.words_of(0))).mean()),
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Errors by scheme and layer, and the differences between schemes."""
        bag = measured[_BAG]
        totals = bag["total"].to_numpy()
        # [CLS] is the same in all sentences before the first layer: there is nothing to explain.
        differ = totals.mean(axis=0) > 1e-9
        layers = [int(layer) for layer in bag["layer"].to_numpy()[differ]]
        inner = np.array(layers) >= 0

        def shares(name: str) -> dict[str, Floats]:
            """(layers, sentences) of each scheme: values whose means are shares left."""
            return {
                scheme: per_item(
                    measured[scheme][name].to_numpy()[:, differ].T, totals[:, differ].T
                )
                for scheme in SCHEMES
            }

        error, control = shares("error"), shares("control")
        mean = {name: of[inner].mean(axis=0) for name, of in error.items()}
        dealt = {name: of[inner].mean(axis=0) for name, of in control.items()}
        gains = [mean[name] - mean[TREE] for name in SCHEMES if name != TREE]
        pairs = self._pairs({name: of[None] for name, of in mean.items()}, None)
        tables = {
            "schemes": self._schemes(mean, dealt, measured).merge(
                _over_trees(pairs), how="left", on="scheme"
            ),
            "layers": self._compared(
                {"scheme": list(SCHEMES), "layer": layers},
                np.concatenate(list(error.values())),
                np.concatenate(list(control.values())),
            ),
            "pairs": pairs,
            "layer_pairs": self._pairs(
                {name: of[inner] for name, of in error.items()}, np.array(layers)[inner].tolist()
            ),
        }
        return self.result(
            provenance,
            tables,
            evidence={
                "tree_lead": self._least(gains).with_controls(
                    {"the same roles dealt at random": self._least([dealt[TREE] - mean[TREE]])}
                )
            },
            facts={
                "examples": len(totals),
                "missing": int(bag.attrs["missing"]),
                "empty": int(bag.attrs["empty"]),
                "unseen": float(bag.attrs["unseen"]),
            },
        )

    def _compared(
        self, labels: Mapping[str, Sequence[object]], error: Floats, control: Floats
    ) -> pd.DataFrame:
        """Errors (rows, sentences), those of controls, and by how much they are less."""
        left = self.means(error, within=(0, np.inf), families=2)
        gain = self.means(control - error, families=2)
        return labelled_table(
            labels,
            {
                "n": left.n,
                **with_bounds("error", left, p=False),
                "control": control.mean(axis=1),
                **with_bounds("gain", gain),
            },
        )

    def _schemes(
        self,
        mean: Mapping[str, Floats],
        dealt: Mapping[str, Floats],
        measured: Mapping[str, xr.Dataset],
    ) -> pd.DataFrame:
        """Means over layers."""
        found = self._compared(
            {"scheme": list(SCHEMES)}, np.stack(list(mean.values())), np.stack(list(dealt.values()))
        )
        found.insert(1, "title", [scheme.title for scheme in SCHEMES.values()])
        return found.assign(
            roles=[int(measured[name].attrs["roles"]) for name in SCHEMES],
            rare=[float(measured[name].attrs["rare"]) for name in SCHEMES],
        )

    def _pairs(self, of: Mapping[str, Floats], layers: Sequence[int] | None) -> pd.DataFrame:
        """Differences of all pairs of schemes, in each of the rows that they have."""
        both = list(combinations(SCHEMES, 2))
        found = self.means(np.concatenate([of[one] - of[other] for one, other in both]))
        labels = {"pair": [f"{one} {other}" for one, other in both]}
        table = labelled_table(
            labels if layers is None else labels | {"layer": layers},
            with_bounds("difference", found),
        )
        split = table.pop("pair").str.split(" ", expand=True)
        table.insert(0, "first", split[0])
        table.insert(1, "second", split[1])
        return table

    def _least(self, gains: Sequence[Floats]) -> Estimate:
        """The smallest of some differences (N,): all must be above zero for it to be."""
        found = least_means([gain[None] for gain in gains], level=self.level)
        value, low, high = (float(side[0]) for side in (found.value, found.low, found.high))
        return Estimate(value, low, high, int(found.n[0]), self.level, "sentences")


def _over_trees(pairs: pd.DataFrame) -> pd.DataFrame:
    """By how much more each scheme leaves than trees do, from the table of all pairs."""
    rows = pairs[pairs["second"] == TREE]  # trees are the last scheme
    columns = {f"difference{end}": f"over_trees{end}" for end in ("", "_low", "_high", "_p")}
    return rows.rename(columns={"first": "scheme", **columns}).drop(columns="second")
