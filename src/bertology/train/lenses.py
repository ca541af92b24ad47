"""An affine lens: for each layer, the map from its states to those of the last layer.

    lens = fit_lens(encoder, texts, folder=context.trained)      # an AffineLens
    Clozes(encoder, lens=lens).answers(questions)

Words of texts are masked, drawn by the number of the text, and the states there are regressed on
those of the same layer (Din et al. 2023; the tuned lens of Belrose et al. 2023 fits the same map by
gradient descent on the predictions). The fit is least squares with a penalty that draws the map
towards the identity, the logit lens: where there is too little text, that is what is left. It is a
sum over texts and one linear solution, so that it needs no choice of steps, is the same each time,
and goes on after a kill where the sums were last written. In a `folder` it is kept in
`lenses/IDENTITY`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bertology.drafts import draft_folder, mend, put_in_place
from bertology.errors import DataError, StoreError
from bertology.model.batch import Batch, Text
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.masked_lm.hidden_words import draw_hidden
from bertology.model.masked_lm.lenses import AffineLens, StatesAt

_BLOCK = 256  # texts whose sums are written together
_SHARE = 0.15  # of the words of a text are masked, as in pre-training
_PENALTY = 0.01  # of the mean variance of a state's dimensions, for each masked word
_SUMS, _LENS = "sums.safetensors", "lens.safetensors"

Tell = Callable[[int, int], None]


@dataclass
class _Sums:
    """What least squares needs of the states X (n, M) of each layer, and of Y - X."""

    done: int  # texts
    words: int
    x: Tensor  # (L, M)
    y: Tensor  # (L, M)
    xx: Tensor  # (L, M, M)
    xy: Tensor  # (L, M, M)

    @classmethod
    def empty(cls, layers: int, width: int) -> _Sums:
        """Of no text."""
        line, square = (layers, width), (layers, width, width)
        make = [torch.zeros(size, dtype=torch.float64) for size in (line, line, square, square)]
        return cls(0, 0, *make)

    def add(self, states: Tensor) -> None:
        """Of some masked words: (L, n, M), the last layer's being what is to be told."""
        x = states.double()
        y = x[-1] - x
        self.words += x.shape[1]
        self.x += x.sum(1)
        self.y += y.sum(1)
        self.xx += x.transpose(1, 2) @ x
        self.xy += x.transpose(1, 2) @ y

    def lens(self, fingerprint: str) -> AffineLens:
        """The maps: X W + b is nearest to Y."""
        n, layers = self.words, len(self.x)
        middle, change = self.x / n, self.y / n
        spread = self.xx / n - middle[:, :, None] * middle[:, None]
        shared = self.xy / n - middle[:, :, None] * change[:, None]
        width = spread.shape[-1]
        size = spread.diagonal(dim1=1, dim2=2).mean(-1)  # (L,)
        penalty = (_PENALTY * size).clamp_min(1e-12)[:, None, None] * torch.eye(width)
        weight = torch.linalg.solve(spread + penalty.double(), shared)
        bias = change - (middle[:, None] @ weight)[:, 0]
        weight += torch.eye(width, dtype=torch.float64)
        weight[layers - 1], bias[layers - 1] = torch.eye(width), 0.0
        return AffineLens(weight.float(), bias.float(), fingerprint)

    def save(self, place: Path) -> None:
        from safetensors.torch import save_file

        tensors = {"x": self.x, "y": self.y, "xx": self.xx, "xy": self.xy}
        known = {"done": str(self.done), "words": str(self.words)}
        with draft_folder(place) as draft:
            save_file(tensors, draft / _SUMS, metadata=known)
            put_in_place(draft, place)

    @classmethod
    def load(cls, path: Path) -> _Sums:
        from safetensors import safe_open

        with safe_open(path, framework="pt") as found:
            known = found.metadata()
            sums = [found.get_tensor(name) for name in ("x", "y", "xx", "xy")]
        return cls(int(known["done"]), int(known["words"]), *sums)


def fit_lens(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    seed: int = 0,
    folder: Path | None = None,
    tokens_per_batch: int = 4096,
    tell: Tell = lambda done, total: None,
) -> AffineLens:
    """The affine lens of a model, from `folder` if it is there; fitted to these texts if not.

    `tell` gets the number of texts read, and their number in all.
    """
    encoder.require(Capability.MASKED_LM, Capability.RESIDUAL)
    encoder.require_tokenizer()
    place = None if folder is None else folder / "lenses" / _identity(encoder, texts, seed)
    try:
        sums = None
        if place is not None:
            mend(place)
            if (place / _LENS).exists():
                return AffineLens.load(place / _LENS)
            sums = _Sums.load(place / _SUMS) if (place / _SUMS).exists() else None
    except Exception as error:  # safetensors has errors of its own
        raise StoreError(
            f"The lens in {place} cannot be read: {error}.", hint="Delete that folder to fit again."
        ) from error
    sums = sums or _Sums.empty(encoder.shape.layers, encoder.shape.hidden)
    while sums.done < len(texts):
        block = texts[sums.done : sums.done + _BLOCK]
        for states in _states(encoder, block, sums.done, seed, tokens_per_batch):
            sums.add(states)
        sums.done += len(block)
        tell(sums.done, len(texts))
        if place is not None and sums.done < len(texts):
            sums.save(place)
    if sums.words <= encoder.shape.hidden:
        raise DataError(
            f"The texts have {sums.words} words to mask, and states {encoder.shape.hidden} "
            "dimensions: too few to fit a lens.",
            hint="Give more text.",
        )
    lens = sums.lens(encoder.fingerprint)
    if place is not None:
        with draft_folder(place) as draft:
            lens.save(draft / _LENS)
            put_in_place(draft, place)
    return lens


def _identity(encoder: Encoder, texts: Sequence[Text], seed: int) -> str:
    known = f"{encoder.fingerprint} {seed} {_SHARE} {_PENALTY} {_BLOCK}\n"
    digest = sha256(known.encode())
    for text in texts:
        digest.update(f"{text!r}\n".encode())
    return digest.hexdigest()[:16]


def _states(
    encoder: Encoder, texts: Sequence[Text], first: int, seed: int, tokens_per_batch: int
) -> list[Tensor]:
    """The states of masked words (L, n, M), batch by batch, on the CPU."""
    special = torch.tensor(encoder.tokenizer.all_special_ids, device=encoder.device)
    found = []
    for batch in encoder.batches(list(texts), tokens_per_batch=tokens_per_batch):
        ids = batch.inputs["input_ids"]
        words = batch.real & ~torch.isin(ids, special)
        numbers = [first + at for at in batch.indices]
        drawn, there = draw_hidden(words.cpu().numpy(), numbers, share=_SHARE, seed=seed)
        places, wanted = (torch.from_numpy(np.asarray(a)).to(ids.device) for a in (drawn, there))
        masked = ids.clone()
        rows = torch.nonzero(wanted)[:, 0]
        masked[rows, places[wanted]] = encoder.tokenizer.mask_token_id
        states = StatesAt(places)
        inputs = {**batch.inputs, "input_ids": masked}
        encoder.run(
            Batch(inputs, batch.indices, encoder.tokenizer), reduce={"layer.*.residual": states}
        )
        found.append(states.value()[:, wanted].cpu())
    return found
