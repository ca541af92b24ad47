"""Word predictions at some positions only: the whole vocabulary everywhere is a lot of work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.model.trace import Trace

__all__ = ["logits_at", "predicting_at"]


@contextmanager
def predicting_at(encoder: Encoder, positions: Sequence[int]) -> Iterator[None]:
    """Runs inside score the vocabulary at these positions alone, where the family allows it.

    The model is held for so long: nobody else's run may be cut short.
    """
    decoder = encoder.model.get_output_embeddings()

    def narrow(module: Any, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (given[0][:, list(positions)], *given[1:])

    with encoder.turn():
        if decoder is None:
            yield
            return
        hook = decoder.register_forward_pre_hook(narrow)
        try:
            yield
        finally:
            hook.remove()


def logits_at(trace: Trace, positions: Sequence[int]) -> Tensor:
    """The scores of the only example at these positions, whether or not it was narrowed."""
    logits: Tensor = trace.logits[0]
    return logits if len(logits) == len(positions) else logits[list(positions)]
