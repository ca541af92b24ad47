"""What trainings of a compression are asked for: declared once, for the command and for Python."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from bertology.errors import ParameterError
from bertology.parameters import check_parameters, parameter


@dataclass(frozen=True, kw_only=True)
class CompressSettings:
    """How trainings are made, unless a method says otherwise."""

    epochs: int = parameter(
        3, "Passes over the training data of each training; epochs=… of a method goes before.",
        minimum=1,
    )  # fmt: skip
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    rate: float | None = parameter(
        None, "The highest learning rate. If not given: as for bertology finetune."
    )
    max_length: int | None = parameter(
        None, "Cut texts to so many tokens in training. If not given: to what the model can read.",
        minimum=3,
    )  # fmt: skip
    precision: str = parameter(
        "float32", "bfloat16: mixed precision in training, for GPUs.",
        choices=("float32", "bfloat16"),
    )  # fmt: skip
    seed: int = parameter(
        0, "Of new weights, order of examples, dropout, and of the examples that choose.", minimum=0
    )

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ParameterError("rate", "compress", "be above 0 and finite", self.rate)
        check_parameters(self, of="compress")

    def as_record(self) -> dict[str, Any]:
        """Plain values, as they are saved and hashed."""
        return asdict(self)
