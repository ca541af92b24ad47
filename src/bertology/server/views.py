"""What the page may ask: exactly these keys, of exactly these types and sizes.

A view is everything that determines what the user sees. The page sends the whole view with every
question, so the server keeps no state, and users cannot disturb each other.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from bertology.server.shown import Changes, Shown

Number = Annotated[int, Field(ge=0, le=65_535)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
HeadNumbers = Annotated[list[Number], Field(min_length=2, max_length=2)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Off(_Strict):
    """What is switched off; `how` says what is done to heads."""

    heads: list[HeadNumbers] = Field(default=[], max_length=4096)
    layers: list[Number] = Field(default=[], max_length=256)
    dimensions: list[Number] = Field(default=[], max_length=4096)
    how: Literal["uniform", "zero", "mean"] = "uniform"

    @property
    def changes(self) -> Changes:
        """As a key for kept answers: without heads, `how` makes no difference."""
        return Changes(
            tuple(sorted({(layer, head) for layer, head in self.heads})),
            tuple(sorted(set(self.layers))),
            tuple(sorted(set(self.dimensions))),
            self.how if self.heads else "uniform",
        )


class View(_Strict):
    """What the user looks at."""

    text: str
    pair: str | None = None
    masked: list[Number] = Field(default=[], max_length=512)
    level: Literal["pieces", "words"] = "pieces"
    off: Off = Off()

    @property
    def shown(self) -> Shown:
        """The part of the view that decides the numbers."""
        return Shown(self.text, self.pair, tuple(sorted(set(self.masked))), self.off.changes)


class ViewQuestion(_Strict):
    """All maps."""

    view: View


class MapQuestion(_Strict):
    """One map, in 16 bits for each weight."""

    view: View
    layer: Number
    head: Number


class TreeQuestion(_Strict):
    """The tree of a head, or of a mean of heads: that of a layer, over layers, or of all.

    "structural": that of a structural probe of the layer; of the probe's best one without a layer.
    """

    view: View
    layer: Number | None = None
    head: Number | None = None
    tree: Literal["undirected", "to-head", "to-dependent", "structural"] = "undirected"


class PredictQuestion(_Strict):
    """The predictions of the model."""

    view: View
    top: int = Field(default=10, ge=1, le=100)


class AttributionQuestion(_Strict):
    """The classifier's answer, and how much each word matters to it."""

    view: View
    method: Literal[
        "attention",
        "mean-attention",
        "rollout",
        "norms",
        "gradient-x-input",
        "integrated-gradients",
        "left-out",
    ] = "attention"


class OutlierQuestion(_Strict):
    """Outlier dimensions."""

    view: View


class _Relation(_Strict):
    kind: Literal["relation"]
    name: Name


class _Pattern(_Strict):
    kind: Literal["pattern"]
    name: Name


class _Similar(_Strict):
    kind: Literal["similar"]
    layer: Number
    head: Number


class SearchQuestion(_Strict):
    """All heads, sorted by what was asked."""

    view: View
    query: Annotated[_Relation | _Pattern | _Similar, Field(discriminator="kind")]


class MeanQuestion(_Strict):
    """The mean map of every head over examples of a task."""

    task: Name
    examples: int = Field(default=16, ge=1, le=64)
    off: Off = Off()


class JudgeQuestion(_Strict):
    """Which examples of a task the model answers rightly."""

    task: Name


class PythonQuestion(_Strict):
    """The view as lines of Python."""

    view: View
    layer: Number | None = None
    head: Number | None = None


class Context(_Strict):
    """A text in which a word is looked for, and the sense it has there."""

    text: str
    sense: Annotated[str, Field(max_length=100)] | None = None


class ContextsQuestion(_Strict):
    """Where the occurrences of a word lie in a plane; without texts, those that are bundled.

    Layer -1 is what enters layer 0. `word` may be several forms, with commas.
    """

    word: Name
    contexts: list[Context] = Field(default=[], max_length=100_000)
    layer: int = Field(ge=-1, le=65_535)
    pooling: Literal["mean", "first", "last"] = "mean"
    method: Literal["pca", "t-sne", "umap"] = "pca"
    clusters: int = Field(default=3, ge=2, le=10)
