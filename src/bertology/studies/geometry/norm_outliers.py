"""LayerNorm outliers: are weights of the output LayerNorms far away from all others?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.errors import CapabilityError
from bertology.report import drawings
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.number_text import number_text
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.studies.designs.tables import labelled_table
from bertology.studies.study import Context, Needs, Study

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

__all__ = ["NormOutliers", "NormOutliersResult"]


class NormOutliersResult(Result):
    """Table `layers`: the farthest weight or bias of each layer, and how many lie far away.

    Array `sigmas` (layer, dimension): how many standard deviations the weight or the bias,
    whichever is farther, lies from the mean of its layer.
    """

    @property
    def answer(self) -> str:
        """How many dimensions recur, and the farthest of all."""
        found, limit = self.evidence(), self.facts["sigma"]
        recur, farthest = found["outlier_dimensions"], found["largest_sigma"]
        return (
            f"{'Yes' if recur.value else 'No'}: {recur.value:.0f} of {recur.n} dimensions lie "
            f"beyond {limit:g} σ in several layers, and the farthest weight lies "
            f"{number_text(farthest.value, '.1f')} σ away (weights are exact: no interval)."
        )

    def measures(self) -> Sequence[Measure]:
        """The farthest of each layer."""
        return [
            Measure.of_column(
                self.tables["layers"],
                "largest_sigma",
                name="norm-outlier",
                title="Farthest weight of the output LayerNorm",
                unit="standard deviations",
                reading="High: some dimension is scaled or shifted unlike all others.",
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """A bar for each layer."""
        (measure,) = self.measures()
        caption = (
            "One bar for each layer: how many standard deviations the farthest weight or bias of "
            "its output LayerNorm lies from the mean of all dimensions. Three make an outlier; "
            "normal numbers of this width would reach about that by chance."
        )
        return [drawings.bars(measure, self.about, name="layers", caption=caption)]


@dataclass(frozen=True)
class NormOutliers(Study):
    """Are some weights of the output LayerNorms far away from all others?

    Method: of each layer's output LayerNorm, how many standard deviations the weight or the bias of
    each dimension lies from the mean of all dimensions, whichever is farther. A dimension is an
    outlier where that is more than `sigma`; outlier dimensions of a model are those that are
    outliers in a quarter of the layers, two at least. No text is read.

    Source: BERT Busters (Kovaleva et al. 2021). Limits: numbers of weights are exact and have no
    interval. Among hundreds of dimensions the farthest lies about three deviations away by chance:
    look at those that lie far beyond, and recur.
    """

    needs: ClassVar[Needs] = Needs(capabilities=frozenset({"norms"}))
    result_type: ClassVar[type[Result]] = NormOutliersResult

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """The family must have output LayerNorms."""
        from bertology.model.outliers import norm_sigmas

        if norm_sigmas(encoder) is None:
            raise CapabilityError(
                f"{encoder.family.title} models have no LayerNorm at the output of a layer.",
                hint="See what each family supports with: bertology families",
            )

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """None."""
        return []

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Read the weights."""
        import xarray as xr

        from bertology.model.outliers import SIGMA, norm_sigmas

        context.advance(1)
        return xr.Dataset(
            {"sigmas": (("layer", "dimension"), norm_sigmas(encoder))}, attrs={"sigma": SIGMA}
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """The farthest by layer, and the dimensions that recur."""
        (part,) = measured.values()
        sigmas, limit = part["sigmas"].to_numpy().astype(float), float(part.attrs["sigma"])
        layers = len(sigmas)
        recur = int(((sigmas > limit).sum(0) >= min(layers, max(2, layers // 4))).sum())
        table = labelled_table(
            {"layer": range(layers)},
            {"largest_sigma": sigmas.max(1), "outliers": (sigmas > limit).sum(1)},
        )
        return self.result(
            provenance,
            {"layers": table},
            evidence={
                "largest_sigma": _exact(float(sigmas.max()), sigmas.size),
                "outlier_dimensions": _exact(recur, sigmas.shape[1]),
            },
            facts={"sigma": limit},
            arrays=part[["sigmas"]].drop_attrs(),
        )


def _exact(value: float, n: int) -> Estimate:
    """What is counted and not sampled."""
    return Estimate(value, value, value, n, unit="weights")
