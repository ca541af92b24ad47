"""Disable many sets of heads over a corpus: exact numbers, nothing computed twice.

Disabling a head in layer l changes nothing in the layers below. So the intact model runs once.
Each variant starts in the lowest layer that it changes, where only its difference to the intact
attention is projected. From there all variants go through the remaining layers together, in
batches of equal length without padding. The last layer is computed only at the position that a
classifier reads; where hidden words are asked for, as a whole.

Families that `post_norm` cannot take apart run each variant as a plain forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from bertology.errors import BertologyError, ModelError, ParameterError
from bertology.model.batch import Batch, Text
from bertology.model.families import Capability
from bertology.model.hooks.instrument import hidden_argument, standing_in
from bertology.model.interventions import Intervention, MeanHead, UniformAttention, ZeroHead
from bertology.model.sweeps.post_norm import Disable, PostNormLayer, disabled_output

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.hidden_words import HiddenWords

ABLATIONS = ("uniform", "zero", "mean")
Heads = tuple[tuple[int, int], ...]
# Without cuDNN: it prepares again for every new shape, and a sweep has hundreds of shapes.
_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_ACTIVE_BYTES = 2**29  # memory for the hidden states of all variants of one batch, on a CPU


@dataclass(frozen=True)
class Variant:
    """One set of heads to disable together."""

    heads: Heads

    def in_layer(self, layer: int) -> list[int]:
        return sorted({h for at, h in self.heads if at == layer})

    @property
    def first_layer(self) -> int:
        return min(layer for layer, _ in self.heads)


class Sweep:
    """A model, the variants to run, and what a disabled head gives."""

    def __init__(
        self,
        encoder: Encoder,
        variants: Sequence[Variant],
        *,
        method: str = "uniform",
        means: Tensor | None = None,
        fast: bool | None = None,
    ) -> None:
        if method not in ABLATIONS:
            raise ParameterError("method", "Sweep", f"be one of {', '.join(ABLATIONS)}", method)
        if method == "mean" and means is None:
            raise ParameterError("means", "Sweep", "be given for method 'mean'", means)
        if any(not v.heads for v in variants):
            raise BertologyError("A variant must disable at least one head.")
        self.encoder, self.variants = encoder, list(variants)
        self.disable = Disable(method, means)
        for variant in variants:
            self._intervention(variant).sites(encoder)  # an error for heads that do not exist
        can = Capability.FAST_REPLAY in encoder.capabilities
        can = can and encoder.head in ("classification", "mlm")
        can = can and not encoder.standing  # lasting changes are made by `run` only
        self.fast = can if fast is None else fast and can

    @cached_property
    def _layers(self) -> list[PostNormLayer]:
        return [PostNormLayer.of(self.encoder, i) for i in range(self.encoder.shape.layers)]

    def logits(
        self, texts: Sequence[Text], *, tokens_per_batch: int = 4096,
        done: Callable[[int], None] = lambda examples: None,
    ) -> Tensor:  # fmt: skip
        """The classifier's scores of the intact model and of every variant: (1 + V, N, classes)."""
        found: Tensor | None = None
        for batch in self.batches(texts, tokens_per_batch):
            scores = self.run(batch).float().cpu()  # (1 + V, B, C)
            if not bool(scores.isfinite().all()):
                raise ModelError(
                    f"{self.encoder.name!r} gives scores that are not finite numbers.",
                    hint="Its weights may be broken, or the precision too low (--dtype float32).",
                )
            if found is None:
                found = torch.empty(scores.shape[0], len(texts), scores.shape[2])
            found[:, list(batch.indices)] = scores
            done(len(batch))
        if found is None:
            raise BertologyError("There is no text to run the sweep on.")
        return found

    def batches(self, texts: Sequence[Text], tokens_per_batch: int = 4096) -> Iterator[Batch]:
        """Batches that suit the sweep: texts of equal length on a CPU, large batches elsewhere."""
        if not self.fast:
            yield from self.encoder.batches(texts, tokens_per_batch=tokens_per_batch)
            return
        active = 1 + len(self.variants)
        if self.encoder.device.type == "cpu":
            room = _ACTIVE_BYTES // (active * self.encoder.shape.hidden * 4)
            yield from self.encoder.batches(texts, tokens_per_batch=room, equal_length=True)
        else:
            yield from self.encoder.batches(texts, tokens_per_batch=tokens_per_batch)

    def run(self, batch: Batch) -> Tensor:
        """One batch: (1 + V, B, classes), the intact model first."""
        with torch.inference_mode(), sdpa_kernel(_BACKENDS):
            return self._replayed(batch) if self.fast else self._looped(batch)

    def word_losses(self, words: HiddenWords) -> Tensor:
        """Mean loss of each text's hidden words, in nats: (1 + V, B), the intact model first."""
        changes = [(), *((self._intervention(variant),) for variant in self.variants)]
        if not self.fast:
            return torch.stack([torch.as_tensor(words.predict(*do).losses) for do in changes])
        with torch.inference_mode(), sdpa_kernel(_BACKENDS), self.encoder.turn():
            states = self._replayed(words.masked, words.read_at)
            # One variant at a time: a row of the whole vocabulary for each hidden word is wide.
            return torch.stack([words.losses(self._head(some)) for some in states]).cpu()

    # The plain way -------------------------------------------------------------------------------

    def _intervention(self, variant: Variant) -> Intervention:
        if self.disable.method == "zero":
            return ZeroHead(variant.heads)
        if self.disable.method == "mean":
            return MeanHead(variant.heads, self.disable.means)
        return UniformAttention(variant.heads)

    def _looped(self, batch: Batch) -> Tensor:
        intact = self.encoder.run(batch).logits
        others = [self.encoder.run(batch, do=self._intervention(v)).logits for v in self.variants]
        return torch.stack([intact, *others])

    # The fast way --------------------------------------------------------------------------------

    def _replayed(self, batch: Batch, at: Tensor | None = None) -> Tensor:
        """The head's scores (1 + V, B, C); with places `at` (B, K) the states (1 + V, B, K, M)."""
        encoder = self.encoder
        with encoder.turn():
            x = self._embeddings(batch)  # (B, T, M) the intact stream
            size, layers = len(x), encoder.shape.layers
            mask = _additive_mask(batch, x)
            order = sorted(range(len(self.variants)), key=lambda i: self.variants[i].first_layer)
            active = x.new_empty((len(order) * size, *x.shape[1:]))
            started = 0  # variants that have branched off so far, in `order`
            for index in range(layers - 1):
                layer = self._layers[index]
                edits = self._edits(order[:started], index, size)
                disabled = partial(disabled_output, disable=self.disable, layer=index)
                layer.pass_through(
                    active[: started * size], _repeat(mask, started), edits, disabled
                )
                starting = [i for i in order[started:] if self.variants[i].first_layer == index]
                x = self._branch(layer, index, x, mask, starting, active[started * size :])
                started += len(starting)
            hidden = self._read(x, active[: started * size], mask, order, started, at)
            if at is None:
                hidden = self._head(hidden)  # ((1 + V) · B, C)
        scores = hidden.view(1 + len(order), size, *hidden.shape[1:])
        undo = torch.empty(len(order), dtype=torch.long)
        undo[torch.tensor(order, dtype=torch.long)] = torch.arange(len(order))
        return torch.cat([scores[:1], scores[1:][undo.to(scores.device)]])

    def _edits(self, order: Sequence[int], layer: int, size: int) -> list[tuple[slice, list[int]]]:
        """The variants in `order` that disable heads in this layer: their rows, and the heads."""
        return [
            (slice(row * size, (row + 1) * size), heads)
            for row, i in enumerate(order)
            if (heads := self.variants[i].in_layer(layer))
        ]

    def _branch(
        self, layer: PostNormLayer, index: int, x: Tensor, mask: Tensor | None,
        starting: Sequence[int], room: Tensor,
    ) -> Tensor:  # fmt: skip
        """The intact layer, and the variants whose lowest change is in this layer."""
        z, v = layer.attend(x, mask)
        intact = layer.project(z).add_(x)
        instead = disabled_output(v, mask, self.disable, index)
        size = len(x)
        for row, i in enumerate(starting):
            heads = self.variants[i].in_layer(index)
            changed = layer.change(heads, instead[:, :, heads] - z[:, :, heads])
            torch.add(intact, changed, out=room[row * size : (row + 1) * size])
        layer.finish_in_place(room[: len(starting) * size])
        return layer.finish(intact)

    def _read(
        self, x: Tensor, active: Tensor, mask: Tensor | None, order: Sequence[int], started: int,
        places: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """The last layer where the head reads it: intact, then the variants: ((1 + V) · B, M).

        At `places` (B, K) of each text: ((1 + V) · B, K, M).
        """
        last = self.encoder.shape.layers - 1
        layer, size = self._layers[last], len(x)
        found = []
        waiting = len(order) - started  # variants that change the last layer only
        parts = [(x, [], 1), (active, self._edits(order[:started], last, size), started)]
        parts.append((x.repeat(waiting, 1, 1), self._edits(order[started:], last, size), waiting))
        for stream, edits, times in parts:
            if times and places is not None:
                disabled = partial(disabled_output, disable=self.disable, layer=last)
                layer.pass_through(stream, _repeat(mask, times), edits, disabled)
                where = places.repeat(times, 1)
                rows = torch.arange(len(stream), device=x.device)[:, None]
                found.append(stream[rows, where])
            elif times:
                at = torch.zeros(len(stream), dtype=torch.long, device=x.device)
                found.append(
                    layer.read(stream, at, _repeat(mask, times), edits, self.disable, last)
                )
        return torch.cat(found)

    def _embeddings(self, batch: Batch) -> Tensor:
        """What enters layer 0: the model's own code runs and is stopped there."""

        def stop(
            module: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
        ) -> None:
            raise _Reached(hidden_argument(args, kwargs)[0])

        block = self.encoder.family.stacks[self.encoder.family.main_stack].block
        hook = self.encoder.module(block, 0).register_forward_pre_hook(stop, with_kwargs=True)
        try:
            self.encoder.base(**batch.inputs)
        except _Reached as reached:
            return reached.hidden
        finally:
            hook.remove()
        raise BertologyError(
            f"A forward pass of {self.encoder.family.title} never called its layers."
        )

    def _head(self, hidden: Tensor) -> Tensor:
        """The model's own head on the position (N, M), or positions (N, K, M), that were read."""
        base: Any = self.encoder.base
        stream = hidden if hidden.dim() == 3 else hidden[:, None]  # (N, K, M)
        pooler = getattr(base, "pooler", None)
        if self.encoder.family.model_type == "albert" and pooler is not None:
            pooled = base.pooler_activation(pooler(hidden))
        else:
            pooled = None if pooler is None else pooler(stream)
        known = BaseModelOutputWithPooling(last_hidden_state=stream, pooler_output=pooled)
        with standing_in(base, {"forward": lambda *args, **kwargs: known}):
            ids = torch.zeros(*stream.shape[:2], dtype=torch.long, device=hidden.device)
            logits: Tensor = self.encoder.model(input_ids=ids).logits
        return logits


class _Reached(Exception):  # noqa: N818 - not an error: how a pass is stopped at the first layer
    def __init__(self, hidden: Tensor) -> None:
        self.hidden = hidden


def _additive_mask(batch: Batch, like: Tensor) -> Tensor | None:
    """(B, 1, 1, T), or None where nothing is padded."""
    if bool(batch.real.all()):
        return None
    lowest = torch.finfo(like.dtype).min
    return torch.zeros_like(batch.real, dtype=like.dtype).masked_fill(~batch.real, lowest)[
        :, None, None
    ]


def _repeat(mask: Tensor | None, times: int) -> Tensor | None:
    return None if mask is None else mask.repeat(times, 1, 1, 1)
