"""The reply of a masked language model to one question: what it says, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.drafts import write_whole
from bertology.errors import ParameterError, StoreError
from bertology.results.number_text import number_text
from bertology.results.provenance import short_model
from bertology.results.rendering import FIGURE_FORMATS, render

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_HEIGHTS = " ▁▂▃▄▅▆▇█"
_BAR = 24  # characters of the longest bar


@dataclass(frozen=True)
class Reply:
    """Answers to one question, from the best on, and how they come about from layer to layer.

    Each reading is a layer, the last of which is the model itself; without a lens there is one.
    `shares` (R, A) are what the readings give to the model's own best answers: probabilities over
    the whole vocabulary or, where there were candidates, shares among these.
    """

    model: str
    text: str
    answers: tuple[str, ...]
    log_probabilities: tuple[float, ...]  # of the answers, by the model itself
    shares: NDArray[np.float64]
    best: tuple[tuple[tuple[str, float], ...], ...]  # of each reading its own best words
    lens: str | None = None
    closed: bool = False  # whether candidates were given
    prior: str | None = None

    @property
    def unit(self) -> str:
        """What `shares` are, in words."""
        if not self.closed:
            return "probability"
        less = " less the template's prior" if self.prior else ""
        return f"share among the candidates{less}"

    def table(self) -> pd.DataFrame:
        """A row for each answer and layer, with the answer's rank in the model's own reply."""
        import pandas as pd

        rows = [
            (layer, rank + 1, word, float(self.shares[layer, rank]))
            for layer in range(len(self.shares))
            for rank, word in enumerate(self.answers)
        ]
        return pd.DataFrame(rows, columns=["layer", "rank", "answer", "share"])

    def bars(self) -> list[tuple[str, str, str, str]]:
        """Of each answer: the word, its share in per cent, a bar, and its height in each layer."""
        own = self.shares[-1]
        most, highest = max(float(own.max()), 1e-12), max(float(self.shares.max()), 1e-12)
        return [
            (
                word,
                f"{number_text(100 * share, '.1f')} %",
                "█" * max(1, round(_BAR * share / most)) if share >= 0.0005 else "",
                "".join(_HEIGHTS[_height(v / highest)] for v in self.shares[:, at]),
            )
            for at, (word, share) in enumerate(zip(self.answers, own, strict=True))
        ]

    def __str__(self) -> str:
        lines = [f"{self.model}: {self.text}", ""]
        longest = max(len(word) for word in self.answers)
        for word, share, bar, layers in self.bars():
            shown = f"  {layers}" if len(self.shares) > 1 else ""
            lines.append(f"{word:<{longest}}  {share:>7}{shown}  {bar}".rstrip())
        return "\n".join(lines)

    def plot(self) -> Figure:
        """The best words of each layer, coloured by what the layer gives them."""
        from bertology.report.figures.decoded import word_grid

        many = len(self.best) > 1
        how = {"logit": "logit lens", "affine": "affine lens"}.get(self.lens or "", "")
        return word_grid(
            [[word for word, _ in row] for row in self.best],
            np.array([[share for _, share in row] for row in self.best]),
            rows=[str(layer) for layer in range(len(self.best))] if many else [""],
            title=f"{self.text}\n{short_model(self.model)}{f', {how}' if many else ''}",
            label=self.unit,
            note="Layers are numbered from 0; the last one is the model itself." if many else "",
        )

    def save(self, path: str | Path) -> Path:
        """Write the figure as SVG, PDF or PNG, by the end of the file's name."""
        target = Path(path)
        data = render(self.plot(), figure_format(target))
        try:
            write_whole(target, data)
        except OSError as error:
            raise StoreError(f"{target} cannot be written: {error.strerror or error}.") from error
        return target


def figure_format(path: str | Path) -> str:
    """The format of a figure's file, by the end of its name."""
    found = Path(path).suffix.lstrip(".").lower()
    if found not in FIGURE_FORMATS:
        ends: Sequence[str] = [f".{name}" for name in FIGURE_FORMATS]
        raise ParameterError("figure", "ask", f"end in {', '.join(ends)}", str(path))
    return found


def _height(share: float) -> int:
    return 0 if share < 0.01 else max(1, round(share * (len(_HEIGHTS) - 1)))
