"""What a join is: an answer made of the stored answers of studies. No model is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.studies.study import Question

if TYPE_CHECKING:
    from bertology.results.result import Result


@dataclass(frozen=True)
class Join(Question):
    """Subclass it in one file of `joins/`; the file name is its name, as with studies.

    `join` is what users call; a subclass writes `combine`.
    """

    sources: ClassVar[tuple[str, ...]]
    """The studies whose results it takes; none are named where it takes those of any study."""
    over: ClassVar[str] = ""
    """What it is over, where that is no single corpus, such as `all tasks`."""
    made_by: ClassVar[str] = (
        "`bertology reproduce` and `bertology verify` make it, and `bertology join` of stored "
        "results."
    )
    """Which commands make it, for those who try to run it on a model."""
    lacking: ClassVar[str] = "it needs results of other studies"
    """Why there is none, where no step of a plan makes it."""

    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def join(self, results: Sequence[Result]) -> Result:
        """The combined result; its identity depends on those of the results that it was made of."""
        name = _name_of(type(self))
        if not results:
            raise ParameterError("results", name, "hold at least one result", 0)
        for result in results:
            if self.sources and result.provenance.study not in self.sources:
                must = f"be of {', '.join(self.sources)}"
                raise ParameterError("results", name, must, result.provenance.study)
        return self.combine(results, name)

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Put together what the results say; they are of the `sources`."""
        raise NotImplementedError

    def provenance(self, name: str, main: Result, identities: Mapping[str, object]) -> Provenance:
        """Where the combined result comes from; its model, and corpus, are those of `main`."""
        return Provenance(
            study=name,
            study_version=self.version,
            parameters=self.parameters,
            model=main.provenance.model,
            corpus=None if self.over else main.provenance.corpus,
            results=dict(identities),
            over=self.over,
            seed=getattr(self, "seed", None),
        )


@dataclass(frozen=True)
class ResampledJoin(Join):
    """A join whose intervals or tests rest on draws."""

    resamples: int = parameter(10_000, "Resamples behind intervals and tests.", minimum=100)
    seed: int = parameter(0, "Seed of the resampling.", minimum=0)


def _name_of(kind: type[Join]) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in kind.__name__).strip("-")
