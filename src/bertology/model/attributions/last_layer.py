"""Passes in which only the last layer is computed: what lies below is the same in all of them.

    with last_layer_only(encoder, batch):
        encoder.run(batch, do=change_of_the_last_layer)     # many times

A search for other attention of the last layer asks the model dozens of times about the same texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from torch import nn

from bertology.model.batch import Batch
from bertology.model.families import Capability
from bertology.model.hooks.instrument import standing_in

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder


@contextmanager
def last_layer_only(encoder: Encoder, batch: Batch) -> Iterator[None]:
    """Layers below the last give what they give to this batch; only runs on it are right inside.

    Where one module serves several layers, changes hold for all runs, or more is looked at than the
    layer below (by a part that reads several layers, or a smaller model's form), passes stay whole.
    """
    layers, plain = encoder.shape.layers, Capability.FAST_REPLAY in encoder.capabilities
    if layers < 2 or not plain or encoder.shares_layers or encoder.standing:
        yield
        return
    block = encoder.family.stacks[encoder.family.main_stack].block
    below = [encoder.module(block, layer) for layer in range(layers - 1)]
    kept: list[object] = []

    def keep(module: nn.Module, args: object, output: object) -> None:
        kept.append(output)

    with encoder.turn(), ExitStack() as undo:
        hook = below[-1].register_forward_hook(keep)
        try:
            encoder.run(batch)
        finally:
            hook.remove()

        def again(*args: object, **kwargs: object) -> object:
            # Only the last layer looks at what it is given, so all below may give the same.
            return kept[0]

        for module in below:
            undo.enter_context(standing_in(module, {"forward": again}))
        yield
