"""Words as one vector each: sums of their states over all contexts, and their first component.

The corpus is streamed. What is held are sums for each word of a vocabulary, whatever the number
of tokens. The first principal component of a word's occurrences (the line through zero that lies
nearest to them, as in a singular value decomposition without centring) would need a matrix for each
word; instead it is found by power iterations: the first pass gives the mean, which is where the
iterations start, and each further pass over the corpus gives every word one step, Σ x (x · v).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.words import word_batches
from bertology.arrays import Floats
from bertology.data.corpus import Example, Field
from bertology.data.words.piece_words import word_spans

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.data.words.alignment import Span
    from bertology.model.encoder import Encoder

METHODS = ("mean", "component")
"""A word is the mean of its states, or their first principal component."""
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_NO_PART_OF_A_WORD = re.compile(r"[\s\x00-\x1f\x7f]+")
_LONGEST = 1000  # bytes; what is longer is no word


def plain_words(example: Example) -> list[list[Span]]:
    """The annotated words; where none are annotated, words and marks of punctuation."""
    if Field.OFFSETS in example.annotations or Field.WORDS in example.annotations:
        return word_spans(example)
    return [[match.span() for match in _WORD.finditer(text)] for text in example.texts]


def spelt(word: str, *, lower: bool = False) -> str:
    """A word as a file of vectors can hold it: white space inside becomes `_`; "" if too long."""
    found = _NO_PART_OF_A_WORD.sub("_", word.lower() if lower else word)
    return found if len(found.encode(errors="replace")) <= _LONGEST else ""


def count_words(examples: Iterable[Example], *, lower: bool = False) -> tuple[Counter[str], int]:
    """How often each word occurs, and how many examples there are."""
    counts: Counter[str] = Counter()
    read = 0
    for example in examples:
        read += 1
        for text, spans in zip(example.texts, plain_words(example), strict=True):
            counts.update(spelt(text[a:b], lower=lower) for a, b in spans)
    counts.pop("", None)
    return counts, read


class ContextSums:
    """Sums over the occurrences of each word, for some layers; 0 is what enters the first layer."""

    def __init__(
        self, words: Sequence[str], layers: Sequence[int], width: int, *, device: str = "cpu"
    ) -> None:
        import torch

        self.words, self.layers = list(words), tuple(layers)
        self.numbers: Mapping[str, int] = {word: at for at, word in enumerate(self.words)}
        shape = (len(self.layers), len(self.words), width)
        self.counts = torch.zeros(len(self.words), dtype=torch.float64, device=device)
        self.sums = torch.zeros(shape, dtype=torch.float64, device=device)
        self.directions: Tensor | None = None  # unit vectors, after the first pass
        self.steps: Tensor | None = None  # of power iterations: sums of the pass that goes on
        self.moved = 0.0
        """How far (1 − cosine) the last step turned the word that it turned most."""

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """All that must be kept to go on later."""
        found = {"counts": self.counts, "sums": self.sums}
        if self.directions is not None and self.steps is not None:
            found |= {"directions": self.directions, "steps": self.steps}
        return {name: value.cpu().numpy() for name, value in found.items()}

    def restore(self, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Go on with what `arrays` gave."""
        import torch

        for name, value in arrays.items():
            setattr(self, name, torch.from_numpy(np.array(value)).to(self.sums.device))

    def add(self, layer: int, ids: Tensor, states: Tensor) -> None:
        """The states (n, width) of some occurrences after one of the layers."""
        import torch

        at = self.layers.index(layer)
        x = states.to(self.sums.device, torch.float64)
        if self.directions is None or self.steps is None:
            self.sums[at].index_add_(0, ids, x)
            if at == 0:
                self.counts.index_add_(0, ids, torch.ones_like(ids, dtype=torch.float64))
        else:
            along = (x * self.directions[at][ids]).sum(dim=1, keepdim=True)
            self.steps[at].index_add_(0, ids, x * along)

    def end_pass(self) -> None:
        """Begin the power iterations with the means, or take one step of them."""
        import torch

        turned = _unit(self.sums if self.steps is None else self.steps)
        if self.directions is not None and turned.numel():
            gone = (turned * turned).sum(-1) > 0
            cosine = (turned * self.directions).sum(-1)
            self.moved = float((1 - cosine)[gone].max()) if gone.any() else 0.0
        self.directions, self.steps = turned, torch.zeros_like(self.sums)

    def vectors(self, method: str) -> Floats:
        """(layers, words, width); zeros for words that did not occur.

        A component has the direction of its words' line and the length of the mean along it.
        """
        means = self.sums / self.counts.clamp_min(1)[:, None]
        if method == "component" and self.directions is not None:
            means = self.directions * (self.directions * means).sum(-1, keepdim=True)
        found: Floats = means.cpu().numpy()
        return found


def _unit(x: Tensor) -> Tensor:
    """Rows of length 1; zeros stay."""
    length: Tensor = x.norm(dim=-1, keepdim=True)
    found: Tensor = x / length.where(length > 0, length.new_ones(()))
    return found


def add_contexts(
    encoder: Encoder,
    examples: Sequence[Example],
    sums: ContextSums,
    *,
    pooling: str = "mean",
    lower: bool = False,
    batch_tokens: int = 4096,
    advance: Callable[[int], None] = lambda examples: None,
) -> int:
    """Add all occurrences of the words of `sums`; how many had no piece of their own, or were cut.

    `pooling`: the state of a word is that of its first or last piece, or their mean.
    """
    import torch

    from bertology.model.reducers.unit_states import UnitStates

    sites = ["embeddings" if n == 0 else f"layer.{n - 1}.residual" for n in sums.layers]
    lost = 0
    batches = word_batches(encoder, examples, tokens_per_batch=batch_tokens, words=plain_words)
    for read in batches:
        groups: list[list[tuple[int, ...]]] = []
        ids: list[int] = []
        for one in read.examples:
            own = []
            for word, (start, end) in enumerate(one.alignment.word_spans):
                text = one.example.texts[one.alignment.sequences[word]]
                number = sums.numbers.get(spelt(text[start:end], lower=lower))
                if number is None:
                    continue
                if pieces := one.alignment.pieces_of(word):
                    own.append(pieces)
                    ids.append(number)
                else:
                    lost += 1
            groups.append(own)
        if ids:
            of = torch.tensor(ids, device=sums.sums.device)

            def take(number: int, states: Tensor, of: Tensor = of) -> None:
                sums.add(number, of, states)

            reducer = UnitStates(read.batch, groups, take, pooling=pooling)
            encoder.run(read.batch, reduce=dict.fromkeys(sites, reducer))
        advance(len(read.batch))
    return lost
