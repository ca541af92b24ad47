"""A study that tells which process measured what, and can be made slow, deadly or faulty.

What it does besides measuring is set in the environment, so that it is no part of any identity
and reaches worker processes: TOY_DIARY is a folder to note process ids in, TOY_PAUSE the seconds
a step takes, TOY_FAULT `part=kind`, a fault of that part's first steps.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bertology.errors import InterruptedRunError, StoreError
from bertology.parameters import parameter
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.studies.study import Context, Needs, Study

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.results.provenance import Provenance

STEPS = 5


class ToyLengthsResult(Result):
    """Lengths of texts."""

    def drawings(self) -> Sequence[Drawing]:
        return [Drawing("lengths", self._draw, "Examples to the right, upwards their lengths.")]

    def _draw(self) -> Figure:
        from matplotlib.figure import Figure

        figure = Figure()
        figure.subplots().plot(self.table()["length"])
        return figure


@dataclass(frozen=True)
class ToyLengths(Study):
    """How long are the texts, times a factor?

    **Method**: `len(text)`, once for each of several parts. [Brackets] are harmless here.
    """

    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text"}), task=True
    )
    result_type = ToyLengthsResult

    factor: float = parameter(1.0, "What lengths are multiplied with.", minimum=0)
    pieces: int = parameter(4, "How many parts the work has.", minimum=1, maximum=9)
    unit: str = parameter("characters", "What is counted.", choices=("characters", "words"))
    layers: tuple[int, ...] = parameter((), "Layers to name in the table.")
    heads: tuple[tuple[int, int], ...] = parameter((), "Heads to name in the table.")
    strict: bool = parameter(True, "Whether to be strict.")

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        return [f"part-{i}" for i in range(self.pieces)]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        return STEPS

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        import xarray as xr

        note(part)
        texts = [e.text if self.unit == "characters" else e.text.split() for e in corpus]
        for step in range(STEPS):
            if step == 2:
                misbehave(part)
            time.sleep(float(os.environ.get("TOY_PAUSE", "0")))
            context.advance(1)
        number = int(part.removeprefix("part-"))
        lengths = [self.factor * len(t) + number for t in texts]
        return xr.Dataset({"length": ("example", lengths)})

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        import pandas as pd

        from bertology.stats import Estimate

        rows: list[dict[str, Any]] = [
            {"part": part, "example": i, "length": float(value)}
            for part, dataset in measured.items()
            for i, value in enumerate(dataset["length"].values)
        ]
        table = pd.DataFrame(rows)
        lengths = table["length"]
        bounds = (lengths.mean(), float(lengths.min()), float(lengths.max()))
        found = {"mean_length": Estimate(*bounds, n=len(lengths), level=0.95)}
        return self.result(provenance, {"lengths": table}, evidence=found)


def note(part: str) -> None:
    """Write down who is at work on what; one file for each attempt."""
    folder = os.environ.get("TOY_DIARY")
    if folder:
        Path(folder).mkdir(exist_ok=True, parents=True)
        taken = len(list(Path(folder).glob(f"{part}.*")))
        Path(folder, f"{part}.{taken}").write_text(str(os.getpid()))


def misbehave(part: str) -> None:
    """Have the fault that the environment asks of this part."""
    where, _, kind = os.environ.get("TOY_FAULT", "").partition("=")
    if where != part:
        return
    first = len(list(Path(os.environ["TOY_DIARY"]).glob(f"{part}.*"))) == 1
    if kind == "always-die" or (kind == "die-once" and first):
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "hiccup" and first:
        raise OSError("the network was away for a moment")
    if kind == "bug":
        raise ZeroDivisionError("a bug in the study")
    if kind == "full":
        raise StoreError("The disk is full.", hint="Free some space.")
    if kind == "interrupt" and first:
        raise KeyboardInterrupt
    if kind == "stopped-training" and first:
        raise InterruptedRunError("The training was stopped.")
