"""Classes of tokens that need no annotation: [SEP], [CLS], punctuation, words."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.classes import Specials, is_punctuation

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder

_JOINTS = "#Ġ▁"  # how pieces mark that they go on with a word, or open one


class PlainClass(StrEnum):
    """What can be seen of a token itself."""

    SEP = "sep"
    CLS = "cls"
    PUNCTUATION = "punctuation"
    WORDS = "words"

    @property
    def shown(self) -> str:
        """As it stands in figures."""
        return {"sep": "[SEP]", "cls": "[CLS]"}.get(self.value, self.value)


def plain_classes(encoder: Encoder, batch: Batch) -> NDArray[np.bool_]:
    """(B, classes, T) in the order of PlainClass; padding and other special tokens have none."""
    tokenizer = encoder.tokenizer
    specials, every = Specials.of(tokenizer), sorted(set(tokenizer.all_special_ids))
    ids, real = batch.inputs["input_ids"].cpu().numpy(), batch.real.cpu().numpy()
    masks = np.zeros((len(PlainClass), *ids.shape), dtype=bool)
    known = np.unique(ids)
    masks[0] = np.isin(ids, sorted(specials.separators))
    masks[1] = np.isin(ids, sorted(specials.first))
    masks[3] = np.isin(ids, known[word_pieces(tokenizer, known)])
    masks[2] = ~np.isin(ids, every) & ~masks[3]
    found: NDArray[np.bool_] = (masks & real).transpose(1, 0, 2)
    return found


def word_pieces(tokenizer: Any, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which pieces of a vocabulary are of words: neither special tokens nor punctuation."""
    special = np.isin(ids, list(set(tokenizer.all_special_ids)))
    pieces = tokenizer.convert_ids_to_tokens(ids.tolist())
    signs = np.fromiter(map(_is_sign, pieces), bool, len(pieces))
    return np.asarray(~(special | signs), dtype=bool)


def role_masks(encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """What `HeadRoles` needs: [CLS], [SEP], punctuation (B, 3, T), and what ends a text (B, T).

    A text ends with its last token and with [SEP], and with a full stop right before these.
    """
    import torch

    order = [PlainClass.CLS, PlainClass.SEP, PlainClass.PUNCTUATION]
    kinds = plain_classes(encoder, batch)[:, [list(PlainClass).index(k) for k in order]]
    real = batch.real.cpu().numpy()
    ends = kinds[:, 1] | (real & ~_after(real))
    ends |= kinds[:, 2] & _after(ends)
    masks, closing = (torch.as_tensor(x, device=encoder.device) for x in (kinds, ends))
    return masks, closing


def _after(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What is true of the token after each one; padding may be on either side."""
    return np.pad(mask[:, 1:], ((0, 0), (0, 1)))


def _is_sign(piece: object) -> bool:
    # A lone "#" is a sign, not a joint; a vocabulary may have holes.
    return is_punctuation(str(piece).lstrip(_JOINTS) or str(piece))
