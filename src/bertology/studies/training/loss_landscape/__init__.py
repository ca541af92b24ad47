"""Loss landscape: does pre-training lead fine-tuning to wider and flatter optima?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from bertology.errors import ParameterError
from bertology.parameters import flag, parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import Reach, reaching
from bertology.studies.study import Context
from bertology.studies.training.loss_landscape.results import (
    AROUND,
    PATH,
    STARTS,
    LossLandscapeResult,
    concluded,
)

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.landscape.survey import Asked, Survey
    from bertology.train.tuning import TuningJob

_ROW_STEPS = 2  # of the progress bar, for a row of a surface or a line between two ends


class Part(NamedTuple):
    """What a part is about: `kind` is run, way, between, or one of the planes."""

    start: str
    kind: str
    numbers: tuple[int, ...]  # the seed, two seeds, or the row


def read_part(part: str) -> Part:
    """`random-path-row-7` as its start, kind and numbers."""
    start, kind, *numbers = part.split("-")
    return Part(start, kind, tuple(int(n) for n in numbers if n.isdigit()))


# Rows of a surface share weights, which take longer to read than a row on a GPU takes. They go with
# the encoder that they are of, and must not hold it.
_GROUNDS: WeakKeyDictionary[Encoder, dict[object, dict[str, Any]]] = WeakKeyDictionary()
_KEPT = 2  # grounds: the way between two runs needs both


@dataclass(frozen=True)
class LossLandscape(TaskTrials):
    """Are the optima that fine-tuning finds wider and flatter after pre-training?

    Method: the model is fine-tuned from its pre-trained weights and from random ones, with as many
    seeds; runs of one seed are paired and share the examples and directions. The training loss is
    measured, without dropout, on a sample of the training examples, another one for each seed.
    Random directions are filter-normalised (Li et al. 2018): a step of 0.1 changes each row of each
    matrix by a tenth of its length, so that large and small weights are treated alike. Width: how
    far one can go until the loss, in the mean over directions and sides, has risen by a quarter of
    a constant answer's. Sharpness: the largest eigenvalue of the Hessian in the same coordinates
    (Lanczos), and its trace (Hutchinson). Claims rest on the logarithm (base 2) of ratios, paired
    by seed, with Student's interval. Surfaces are those of one seed (`--drawn-seed`): around its
    end, and in the plane through the start, the end, and the end of a twin that saw the examples in
    another order. The barrier is how far the loss rises on the straight line between the ends of
    two seeds.

    Source: Hao et al. (2019), as A Primer in BERTology (section 6.1, Figure 6) tells it; filter
    normalisation is Li et al.'s (2018). Limits: a run that did not train lies on a plateau, which
    is flat and no optimum; so only seeds count that come below half of a constant answer's loss
    from both starts, at least half of them and three. Also among trained runs a lower loss bends
    less. So all is measured again at like loss: logits are divided so that every run has half of a
    constant answer's. Biases and LayerNorms are left alone in random directions. A surface shows
    two of millions of directions.
    """

    version: ClassVar[int] = 2
    result_type: ClassVar[type[Result]] = LossLandscapeResult
    column: ClassVar[str] = "start"
    trains_models: ClassVar[bool] = True

    seeds: int = parameter(
        6, "Runs of each start, each with another seed; one gives no verdicts.", minimum=1
    )
    epochs: int = parameter(5, "Passes over the training data.", minimum=1)
    random_epochs: int | None = parameter(
        None,
        "Passes of the random start, which learns more slowly; as many as the other if not given.",
        minimum=1,
    )
    sample: int = parameter(512, "Training examples whose loss is measured.", minimum=2)
    grid: int = parameter(31, "Points along each axis of a surface; an odd number.", minimum=5)
    reach: float = parameter(
        0.5, "How far surfaces and directions go, in lengths of filters.", minimum=1e-4, maximum=4
    )
    rise: float = parameter(
        0.25,
        "The rise that ends an optimum, as a share of a constant answer's loss.",
        minimum=0.001,
        maximum=0.5,
    )
    directions: int = parameter(5, "Random directions of each run, for its width.", minimum=1)
    probes: int = parameter(16, "Random vectors for the trace of the Hessian.", minimum=2)
    iterations: int = parameter(
        20, "At most so many steps of Lanczos' method for the largest eigenvalues.", minimum=3
    )
    drawn_seed: int = parameter(
        0, "The seed whose surfaces are drawn; seeds are numbered from 0.", minimum=0
    )
    without_surfaces: bool = flag("Measure widths, curvature and barriers only: no surfaces.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grid % 2 == 0:
            raise ParameterError("grid", "LossLandscape", "be odd, to have a middle", self.grid)
        if self.drawn_seed >= self.seeds:
            must = f"be below the number of seeds ({self.seeds})"
            raise ParameterError("drawn_seed", "LossLandscape", must, self.drawn_seed)

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """No claim rests on a surface."""
        return {"without_surfaces": True}

    @property
    def variants(self) -> Sequence[str]:
        """The starts."""
        return STARTS

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Runs, which train; then lines between two of them, and rows of surfaces."""
        found = [f"{start}-run-{k}" for k in range(self.seeds) for start in STARTS]
        # No run is in two pairs, so that barriers are independent of each other.
        pairs = [(k, k + 1) for k in range(0, self.seeds - 1, 2)]
        found += [f"{start}-between-{a}-{b}" for a, b in pairs for start in STARTS]
        if self.without_surfaces:
            return found
        found += [f"{start}-way" for start in STARTS]
        return found + [
            f"{start}-{plane}-row-{row}"
            for start in STARTS
            for plane in (AROUND, PATH)
            for row in range(self.grid)
        ]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Per cent of a run; a row is little beside."""
        return BARS if read_part(part).kind in ("run", "way") else _ROW_STEPS

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """One run, or a piece of the landscape around it."""
        reach, steps = reaching(context), self.steps(part, encoder.shape, corpus)
        found = self._measured(encoder, corpus, read_part(part), context, reach)
        reach(steps)
        return found

    def _measured(
        self, encoder: Encoder, corpus: Corpus, part: Part, context: Context, reach: Reach
    ) -> xr.Dataset:
        import xarray as xr

        from bertology.train.evaluate import baseline

        seed = part.numbers[0] if part.kind in ("run", "between") else self.drawn_seed
        survey = self._survey(encoder, corpus, part.start, seed, context)
        if part.kind in ("run", "way"):
            survey.tell = lambda done: reach(int(0.6 * BARS * done))
        arrays: dict[str, object]
        if part.kind == "run":
            arrays = dict(survey.run())
        elif part.kind == "way":
            arrays = {name: ("stop", values) for name, values in survey.way().items()}
        elif part.kind == "between":
            other = self._survey(encoder, corpus, part.start, part.numbers[1], context)
            losses, highest = survey.between(other)
            arrays = {"losses": ("place", losses), "barrier": highest}
        else:
            arrays = {"losses": ("place", survey.row(part.kind, part.numbers[0]))}
        train = survey.job.train
        return xr.Dataset(
            arrays,
            attrs={
                "task": corpus.task.name if corpus.task else corpus.name,
                "train_size": len(train),
                "train_fingerprint": train.fingerprint,
                "sample": len(survey.sample),
                **{f"constant_{m}": score for m, score in baseline(train, corpus).items()},
            },
        )

    def _survey(
        self, encoder: Encoder, corpus: Corpus, start: str, seed: int, context: Context
    ) -> Survey:
        """The landscape of one run; that of the last few is kept for the next part."""
        from bertology.train.landscape.survey import Survey

        job, asked = self._job(encoder, corpus, start, seed), self._asked()
        drawn = seed == self.drawn_seed and not self.without_surfaces
        folder: Path | None = context.trained
        key = (job.identity, asked, folder, drawn, context.batch_tokens)
        kept = _GROUNDS.setdefault(encoder, {})
        if key not in kept:
            while len(kept) >= _KEPT:
                del kept[next(iter(kept))]
            kept[key] = {}
        return Survey(job, asked, folder, drawn, context.batch_tokens, kept[key])

    def _asked(self) -> Asked:
        from bertology.train.landscape.survey import Asked

        return Asked(
            self.sample, self.grid, self.reach, self.rise, self.directions, self.probes,
            self.iterations,
        )  # fmt: skip

    def _job(self, encoder: Encoder, corpus: Corpus, start: str, seed: int) -> TuningJob:
        from dataclasses import replace

        from bertology.train.starts import find_start
        from bertology.train.tuning import TuningJob

        found = find_start(start)
        settings = self.settings(found, encoder.shape.hidden, seed)
        if not found.pretrained and self.random_epochs is not None:
            settings = replace(settings, epochs=self.random_epochs)
        return TuningJob(encoder, self.load_train(corpus), corpus, found, settings)

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means by start, ratios paired by seed, and surfaces as tables."""
        same_training_data(measured)
        parts = {read_part(name): found for name, found in measured.items()}
        tables, evidence, reasons, facts = concluded(
            parts, level=self.level, grid=self.grid, reach=self.reach, rise=self.rise
        )
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={**facts, "seeds": self.seeds, "drawn_seed": self.drawn_seed},
        )
