"""A small convolutional network that tells the five types of attention maps apart.

Maps of any length are first brought to GRID × GRID cells: a cell holds the attention from its rows
(their mean) to its columns (their sum), so the rows of the small map sum to 1 like those of the
large one. Cells may hold parts of tokens; padding gets no cell, and so cannot matter. What cells
are too coarse for (does a line lie on the next token, is a stripe one token wide?) comes along as
a few numbers of the whole map, its facts, which join the last layers.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from bertology.annotated.map_types.facts import FACTS
from bertology.annotated.map_types.looks import GRID, Cells, Look
from bertology.data.map_labels import MAP_TYPES

WEIGHTS = "model.safetensors"
_WIDTHS = (8, 16, 16, 16, 16, 16, 16, 16)  # channels of the eight convolutional layers
_STRIDES = (2, 2, 1, 1, 1, 2, 1, 1)
_HIDDEN = 32
_DROPPED = 0.1  # of what the last layers are given, in training
_FARTHEST = 4.0  # spreads from the middle: what lies beyond tells no more
_BLOCK = MAP_TYPES.index("block")


class MapTypeNetwork(nn.Module):
    """Eight convolutional layers with ReLU, their mean and maximum over places, and the facts."""

    def __init__(self, *, normalised: bool = False) -> None:
        """For training, layers are `normalised` over the batch; `folded` puts that into weights."""
        super().__init__()
        self.first = nn.Conv2d(1, _WIDTHS[0], 3, _STRIDES[0], padding=1)
        # The sentences are the same for all heads: their part is added, computed once a text.
        self.sentences = nn.Conv2d(1, _WIDTHS[0], 3, _STRIDES[0], padding=1, bias=False)
        side = -(-GRID // _STRIDES[0])
        self.place = nn.Parameter(torch.zeros(_WIDTHS[0], side, side))
        layers = zip(_WIDTHS, _WIDTHS[1:], _STRIDES[1:], strict=False)
        self.rest = nn.ModuleList(nn.Conv2d(a, b, 3, s, padding=1) for a, b, s in layers)
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(width) if normalised else nn.Identity() for width in _WIDTHS
        )
        self.join = nn.Linear(2 * _WIDTHS[-1] + FACTS, _HIDDEN)
        self.answer = nn.Linear(_HIDDEN, len(MAP_TYPES))
        # What plain numbers say at once need not pass through the hidden layer.
        self.direct = nn.Linear(FACTS, len(MAP_TYPES), bias=False)
        self.middle: Tensor
        self.spread: Tensor
        # Of the facts, over what the network learned from.
        self.register_buffer("middle", torch.zeros(FACTS))
        self.register_buffer("spread", torch.ones(FACTS))

    def forward(self, small: Tensor, same: Tensor, facts: Tensor) -> Tensor:
        """Logits (B, H, types) of shrunk maps (B, H, GRID, GRID) with `Cells.same` and facts."""
        batch, heads = small.shape[:2]
        # The square root brings out what is faint, as the eye does.
        x = self.first(small.flatten(0, 1)[:, None].clamp_min(0).sqrt())
        common = self.sentences(same[:, None]) + self.place
        x = (x.view(batch, heads, *x.shape[1:]) + common[:, None]).flatten(0, 1)
        x = functional.relu(self.norms[0](x))
        for layer, norm in zip(self.rest, self.norms[1:], strict=True):
            x = functional.relu(norm(layer(x)))
        return self.conclude(x.flatten(2), facts)

    def conclude(self, places: Tensor, facts: Tensor) -> Tensor:
        """Logits of what the last convolution gives, (B · H, channels, places), and the facts."""
        plain = self.plain(facts).flatten(0, 1)
        seen = torch.cat([places.mean(-1), places.amax(-1), plain], -1)
        seen = functional.dropout(seen, _DROPPED, self.training)
        logits: Tensor = self.answer(functional.relu(self.join(seen))) + self.direct(plain)
        return logits.view(*facts.shape[:2], logits.shape[-1])

    def plain(self, facts: Tensor) -> Tensor:
        """Facts on one scale."""
        return ((facts - self.middle) / self.spread).clamp(-_FARTHEST, _FARTHEST)

    def folded(self) -> MapTypeNetwork:
        """The same network without normalisation, ready to be used."""
        plain = MapTypeNetwork().eval()
        with torch.no_grad():
            plain.load_state_dict(
                {k: v for k, v in self.state_dict().items() if not k.startswith("norms.")}
            )
            for i, norm in enumerate(self.norms):
                assert isinstance(norm, nn.BatchNorm2d)
                assert norm.running_mean is not None
                assert norm.running_var is not None
                scale = norm.weight / (norm.running_var + norm.eps).sqrt()
                layers = [plain.first, plain.sentences] if i == 0 else [plain.rest[i - 1]]
                for layer in layers:
                    layer.get_parameter("weight").mul_(scale[:, None, None, None])
                bias = layers[0].get_parameter("bias")
                bias.copy_((bias - norm.running_mean) * scale + norm.bias)
                if i == 0:
                    plain.place.mul_(scale[:, None, None])
        return plain


class UnrolledNetwork(nn.Module):
    """The network with its convolutions written out as matrices, for GPUs.

    It answers as the network that it is made of does, in half precision up to the last layers. On
    grids this small a convolution is a small matrix. A GPU multiplies by it many times as fast as
    its library convolves over so few places, and needs no plan for each new number of maps. On a
    CPU it is the other way round.
    """

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
    of_units = functional.conv2d(units, layer.weight, None, layer.stride, layer.padding)
    matrix = of_units.flatten(1)
    # On "meta" nothing is drawn at random that would be overwritten at once.
    found = nn.Linear(len(matrix), matrix.shape[1], bias=layer.bias is not None, device="meta")
    found.weight = nn.Parameter(matrix.T.contiguous(), requires_grad=False)
    if layer.bias is not None:
        by_place = layer.bias.repeat_interleave(of_units[0, 0].numel())
        found.bias = nn.Parameter(by_place, requires_grad=False)
    return found


@cache
def bundled_network(device: str = "cpu") -> MapTypeNetwork | UnrolledNetwork:
    """The network that comes with the package, made by `benchmarks/train_map_types.py`."""
    with as_file(files("bertology") / "checkpoints" / "map-types" / WEIGHTS) as path:
        weights = load_file(path)
    network = MapTypeNetwork().eval().requires_grad_(False)
    network.load_state_dict({name: value.float() for name, value in weights.items()})
    if torch.device(device).type != "cpu":
        return UnrolledNetwork(network).to(device)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def logits_of(
    network: MapTypeNetwork | UnrolledNetwork, look: Look, same: Tensor, paired: Tensor
) -> Tensor:
    """For each map and type: (B, H, types). One sentence has no block."""
    logits: Tensor = network(look.small, same, look.facts)
    logits[..., _BLOCK].masked_fill_(~paired[:, None], -torch.inf)
    return logits


def types_of(
    network: MapTypeNetwork | UnrolledNetwork, look: Look, same: Tensor, paired: Tensor
) -> Tensor:
    """The type of each map, an index into MAP_TYPES: (B, H)."""
    return logits_of(network, look, same, paired).argmax(-1)


def classify(network: MapTypeNetwork | UnrolledNetwork, maps: Tensor, cells: Cells) -> Tensor:
    """The type of each map of (B, H, T, T): (B, H)."""
    return types_of(network, cells.look(maps), cells.same, cells.paired)
