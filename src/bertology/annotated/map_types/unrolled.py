"""The network with its convolutions written out as matrices, for GPUs.

On grids this small a convolution is a small matrix. A GPU multiplies by it many times as fast as
its library convolves over so few places, and needs no plan for each new number of maps. On a CPU it
is the other way round.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertology.annotated.map_types.looks import GRID
from bertology.annotated.map_types.network import MapTypeNetwork


class UnrolledNetwork(nn.Module):
    """Answers as the network that it is made of does, in half precision up to the last layers."""

    @torch.no_grad()
    def __init__(self, network: MapTypeNetwork, dtype: torch.dtype = torch.float16) -> None:
        """Of a `network` that is ready to be used: normalisation would have to be folded in."""
        super().__init__()
        assert all(isinstance(norm, nn.Identity) for norm in network.norms)
        self.last = network
        self.first = _written_out(network.first, GRID)
        self.first.bias.add_(network.place.flatten())
        self.sentences = _written_out(network.sentences, GRID)
        self.rest = nn.Sequential(nn.ReLU(inplace=True))
        side = network.place.shape[-1]
        for layer in network.rest:
            assert isinstance(layer, nn.Conv2d)
            self.rest.extend([_written_out(layer, side), nn.ReLU(inplace=True)])
            side = -(-side // layer.stride[0])
        self.places = side**2
        for part in (self.first, self.sentences, self.rest):
            part.to(dtype)

    def forward(self, small: Tensor, same: Tensor, facts: Tensor) -> Tensor:
        """Logits (B, H, types) of shrunk maps (B, H, GRID, GRID) with `Cells.same` and facts."""
        dtype = self.first.weight.dtype
        cells = small.clamp_min(0).sqrt_().flatten(2).to(dtype)
        x = self.first(cells)
        x += self.sentences(same.flatten(1).to(dtype))[:, None]
        x = self.rest(x.flatten(0, 1))
        places = x.view(len(x), x.shape[1] // self.places, self.places)
        return self.last.conclude(places.float(), facts)


def _written_out(layer: nn.Conv2d, side: int) -> nn.Linear:
    """What a convolution does to grids of so many rows, as one matrix."""
    channels = layer.in_channels
    units = torch.eye(channels * side**2, device=layer.weight.device).view(-1, channels, side, side)
    of_units = nn.functional.conv2d(units, layer.weight, None, layer.stride, layer.padding)
    matrix = of_units.flatten(1)
    # On "meta" nothing is drawn at random that would be overwritten at once.
    found = nn.Linear(len(matrix), matrix.shape[1], bias=layer.bias is not None, device="meta")
    found.weight = nn.Parameter(matrix.T.contiguous(), requires_grad=False)
    if layer.bias is not None:
        by_place = layer.bias.repeat_interleave(of_units[0, 0].numel())
        found.bias = nn.Parameter(by_place, requires_grad=False)
    return found
