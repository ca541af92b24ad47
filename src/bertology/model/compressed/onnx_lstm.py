"""A bidirectional LSTM over rows of different lengths, as one operation of ONNX for each layer.

PyTorch packs such rows, which an exported file cannot: how they are packed depends on the lengths.
ONNX's own LSTM takes the lengths as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_DIRECTIONS = ("", "_reverse")


def last_states(lstm: nn.LSTM, vectors: Tensor, lengths: Tensor) -> Tensor:
    """(B, T, width) and (B,) -> (B, 2 hidden): the last states of both directions."""
    rows, tokens, _ = vectors.shape
    hidden = lstm.hidden_size
    states = vectors.transpose(0, 1)  # (T, B, width)
    last = states
    for layer in range(lstm.num_layers):
        all_states, last, _ = torch.onnx.ops.symbolic_multi_out(
            "LSTM",
            (states, *_weights(lstm, layer), lengths.to(torch.int32)),
            attrs={"direction": "bidirectional", "hidden_size": hidden},
            dtypes=(vectors.dtype,) * 3,
            shapes=((tokens, 2, rows, hidden), (2, rows, hidden), (2, rows, hidden)),
        )
        states = all_states.transpose(1, 2).flatten(2)  # (T, B, 2 hidden)
    return torch.cat([last[0], last[1]], dim=-1)


def _weights(lstm: nn.LSTM, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Those of inputs, of states, and biases, a row of them for each direction."""
    found: tuple[list[Tensor], ...] = ([], [], [])
    for direction in _DIRECTIONS:
        inputs, states, *biases = (
            _in_order(lstm.get_parameter(f"{name}_l{layer}{direction}"))
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        for held, own in zip(found, (inputs, states, torch.cat(biases)), strict=True):
            held.append(own)
    one, two, three = (torch.stack(held) for held in found)
    return one, two, three


def _in_order(weight: Tensor) -> Tensor:
    """PyTorch's gates are input, forget, cell, output; ONNX's input, output, forget, cell."""
    size = len(weight) // 4
    return torch.cat([weight[:size], weight[3 * size :], weight[size : 3 * size]])
