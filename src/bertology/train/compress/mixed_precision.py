"""Q-BERT: layers whose loss bends most keep more bits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from bertology.drafts import write_whole
from bertology.errors import ParameterError
from bertology.model.compressed.integer_product import Range
from bertology.model.compressed.quantised import quantise
from bertology.model.compressed.rehearsal import rehearsed
from bertology.model.compressed.written import layer_of, named_maps
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.int8 import learn_ranges
from bertology.train.compress.int8_aware import Int8Aware
from bertology.train.compress.method import EPOCHS, STORED, Method
from bertology.train.compress.work import Work
from bertology.train.encoded import encode, task_of
from bertology.train.fit import row_limit
from bertology.train.landscape.curvature import Hessian
from bertology.train.landscape.terrain import Terrain

_GROUPS = "groups"  # how matrices are rounded
_PARTS = 3  # of the examples, on each of which the Hessian is looked at
_EXAMPLES = 32  # in each part
_ITERATIONS = 8  # of Lanczos' method
_TOKENS = 1024  # in one pass: second derivatives need memory


@dataclass(frozen=True)
class MixedPrecision(Method):
    """Layers are ranked by the largest eigenvalue of their Hessian, |mean| + spread over data.

    Half of them, the most sensitive, get `high` bits, the others `low`; tables and what is outside
    of the layers have 8. Rows of a matrix are rounded in groups, each with a range of its own.
    Inputs of maps have 8 bits, as in the paper, in ranges that are learnt and stored. A training
    with rounded weights and inputs comes before they are stored.
    """

    summary: ClassVar[str] = "fewer bits for layers whose loss bends less, trained with them"
    source: ClassVar[str] = "Shen et al. 2019"
    against: ClassVar[Mapping[str, str]] = Int8Aware.against

    low: int = parameter(2, "Bits of the less sensitive half of the layers.", minimum=1, maximum=8)
    high: int = parameter(4, "Bits of the other layers.", minimum=1, maximum=8)
    groups: int = parameter(128, "Groups of rows in a matrix; at most its rows.", minimum=1)
    inputs: str = parameter("int8", "int8: inputs of maps are rounded, too. float: they are not.",
                            choices=("int8", "float"))  # fmt: skip
    epochs: int | None = parameter(None, EPOCHS, minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ParameterError("low", self.name, f"be at most high ({self.high})", self.low)

    @property
    def kind(self) -> str:
        """Other numbers, which are not trained any more."""
        return STORED

    def apply(self, work: Work) -> Encoder:
        """Rank, rehearse, store."""
        encoder = work.encoder
        bits: dict[Any, int]
        if encoder.shares_layers or self.low == self.high:
            bits = dict.fromkeys(_layers(encoder), self.high)
        else:
            found = sensitivities(work)
            order = sorted(found, key=lambda layer: (-found[layer], layer))
            fine = order[: -(-len(order) // 2)]
            bits = {layer: self.high if layer in fine else self.low for layer in sorted(order)}
            told = ", ".join(f"{i + 1}: {found[i]:.3g}" for i in sorted(found))
            work.say(f"largest eigenvalues of layers, |mean| + spread: {told}")
        told = ", ".join(f"{i + 1}: {b}" for i, b in bits.items())
        work.say(f"bits of layers, {told}; of all else 8")
        how: dict[str, Any] = {
            "scheme": _GROUPS,
            "groups": self.groups,
            "bits_of": bits,
            "activations": 8 if self.inputs == "int8" else None,
        }
        ranges: dict[str, Range] = {}
        work.train_on(
            encoder,
            epochs=self.epochs,
            held=lambda model: rehearsed(model, 8, **how, ranges=ranges),
            recordable=False,
        )
        if not ranges and self.inputs == "int8":
            ranges = learn_ranges(work)  # nothing was trained
        return work.around(quantise(encoder.model, 8, **how, ranges=ranges))


def _layers(encoder: Encoder) -> list[int]:
    """Layers that have maps of their own."""
    found = {layer_of(encoder.model, name) for name, _ in named_maps(encoder.model, "layers")}
    return sorted(layer for layer in found if layer is not None)


def sensitivities(work: Work) -> dict[int, float]:
    """For each layer, |mean| + spread of the largest eigenvalue over parts of the training data."""
    encoder, examples = work.encoder, work.choosing
    limit = row_limit(encoder.model, encoder.tokenizer, work.settings.max_length)
    weights = dict(encoder.model.named_parameters())
    prefix = f"{encoder.model.base_model_prefix}."
    scales: dict[int, dict[str, torch.Tensor]] = {}
    for name, _ in named_maps(encoder.model, "layers"):
        layer = layer_of(encoder.model, name)
        weight = weights[f"{prefix}{name}.weight"]
        if layer is not None and weight.numel():
            scales.setdefault(layer, {})[f"{prefix}{name}.weight"] = torch.ones_like(weight)
    parts = max(1, min(_PARTS, -(-len(examples) // _EXAMPLES)))
    known = _Eigenvalues.of(work)
    with work.stages.counted("eigenvalues of layers", parts * len(scales)) as count:
        for part in range(parts):
            some = examples[part * _EXAMPLES : (part + 1) * _EXAMPLES]
            rows = encode(some, encoder.tokenizer, limit)
            terrain = Terrain.over(encoder.model, rows, task_of(some), batch_tokens=_TOKENS)
            for layer, ones in scales.items():
                if not known.has(layer, part):
                    seen = Hessian(terrain, ones).spectrum(
                        iterations=_ITERATIONS, count=1, seed=work.seed, tolerance=0.05
                    )
                    known.keep(layer, part, float(seen.largest[0]))
                count.advance(1)
    found = {layer: [known.value(layer, part) for part in range(parts)] for layer in scales}
    return {i: float(abs(np.mean(v)) + np.std(v)) for i, v in found.items()}


@dataclass
class _Eigenvalues:
    """Those of layers and parts of the data, kept one by one: each may take seconds or minutes."""

    place: Path | None
    identity: str
    values: dict[str, float]

    @classmethod
    def of(cls, work: Work) -> _Eigenvalues:
        """Those that an earlier run of the same work has left."""
        place = None if work.folder is None else work.folder / "eigenvalues.json"
        values: dict[str, float] = {}
        if place is not None and place.is_file():
            try:
                there = json.loads(place.read_text(encoding="utf-8"))
                if there["identity"] == work.identity:
                    values = {name: float(value) for name, value in there["values"].items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                values = {}  # what cannot be read is made again
        return cls(place, work.identity, values)

    def has(self, layer: int, part: int) -> bool:
        return f"{layer} {part}" in self.values

    def value(self, layer: int, part: int) -> float:
        return self.values[f"{layer} {part}"]

    def keep(self, layer: int, part: int, value: float) -> None:
        """One more."""
        self.values[f"{layer} {part}"] = value
        if self.place is not None:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            there = {"identity": self.identity, "values": self.values}
            write_whole(self.place, json.dumps(there))
