"""Word predictions at some positions only.

The projection to the vocabulary is the widest product of a small model. Where only a few positions
are read, it is computed for these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.errors import CapabilityError

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.hooks.instrument import Reducer
    from bertology.model.interventions import Intervention
    from bertology.model.trace import Trace
    from bertology.model.weight_edits import WeightEdit


def run_predicting(
    encoder: Encoder,
    batch: Batch,
    positions: Tensor | Sequence[Sequence[int]],
    *,
    record: Iterable[str] = (),
    do: Sequence[Intervention | WeightEdit] = (),
    reduce: Mapping[str, Reducer] | None = None,
    gradients: bool = False,
) -> tuple[Trace, Tensor]:
    """A run, and its (B, K, V) logits at K positions (B, K) of each example.

    Use these logits, not the trace's own: families that use the weights of the projection without
    calling it (MobileBERT) compute all positions, and the others only those K.
    """
    at = torch.as_tensor(positions, dtype=torch.long, device=encoder.device)
    rows = torch.arange(len(at), device=at.device)[:, None]
    shape = batch.inputs["input_ids"].shape
    narrowed = False

    def narrow(
        module: torch.nn.Module, given: tuple[Tensor, *tuple[object, ...]]
    ) -> tuple[object, ...] | None:
        nonlocal narrowed
        states = given[0]
        if states.shape[:-1] != shape:  # not the states of these tokens
            return None
        narrowed = True
        return (states[rows, at], *given[1:])  # (B, K, M)

    projection = encoder.model.get_output_embeddings()
    with encoder.turn():  # so that the hook acts on no other thread's run
        hook = None if projection is None else projection.register_forward_pre_hook(narrow)
        try:
            trace = encoder.run(batch, record=record, do=do, reduce=reduce, gradients=gradients)
        finally:
            if hook is not None:
                hook.remove()
    logits: Tensor = trace.logits
    if logits.dim() != 3:
        raise CapabilityError(
            f"{encoder.name!r} ({type(encoder.model).__name__}) predicts no tokens.",
            hint="Load it with head='mlm' (--head mlm).",
        )
    return trace, logits if narrowed else logits[rows, at]
