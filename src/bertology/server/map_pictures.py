"""Attention maps for the labelling page, made in advance in a separate thread."""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.map_labels import MapKey, MapRecipe
from bertology.data.map_store import StoredMap
from bertology.errors import DataError

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder

_KEPT = 32  # pictures; the longest have 512 tokens and take under a megabyte


@dataclass(frozen=True)
class MapPicture:
    """One map: rows are the tokens that attend, columns the tokens they attend to."""

    tokens: tuple[str, ...]
    weights: str
    """Rows one after the other, base64 of little-endian 16-bit numbers; 65535 is `peak`."""
    peak: float
    boundary: int | None
    """The first token of the second text, if there is one."""

    def as_json(self) -> dict[str, object]:
        """As it is sent to the page, without layer and head: they would bias the annotator."""
        return asdict(self)


def picture_of(encoder: Encoder, recipe: MapRecipe) -> MapPicture:
    """Run the model on the recipe's text and keep the one map."""
    if recipe.text is None:
        raise DataError(f"The recipe of example {recipe.example!r} has no text.")
    text = recipe.text if recipe.text_b is None else (recipe.text, recipe.text_b)
    batch = encoder.encode(text, too_long="truncate")
    site = f"layer.{recipe.layer}.head.{recipe.head}.pattern"
    weights: NDArray[np.float32] = encoder.run(batch, record=site)[site][0].float().cpu().numpy()
    packed, peak = in_16_bits(weights)
    return MapPicture(tuple(batch.tokens[0]), packed, peak, _boundary(batch))


def stored_picture(maps: Mapping[MapKey, StoredMap], recipe: MapRecipe) -> MapPicture:
    """A map that is stored; its tokens are not, so they have numbers, from 1."""
    stored = maps[recipe.key]
    size, second = len(stored.segments), int((stored.segments == 0).sum())
    tokens = tuple(str(number) for number in range(1, size + 1))
    packed, peak = in_16_bits(stored.weights)
    return MapPicture(tokens, packed, peak, second if second < size else None)


def in_16_bits(weights: NDArray[np.floating]) -> tuple[str, float]:
    """A map as `MapPicture.weights` holds it, and its peak."""
    peak = float(weights.max())
    steps = np.rint(weights / (peak or 1.0) * 65535).astype("<u2")
    return base64.b64encode(steps.tobytes()).decode("ascii"), peak


def _boundary(batch: Batch) -> int | None:
    """Where the second text begins, by the tokenizer: not all families number the segments."""
    sides = () if batch.encodings is None else batch.encodings[0].sequence_ids
    return sides.index(1) if 1 in sides else None


class MapPictures:
    """Pictures by recipe; one thread makes them, one after the other."""

    def __init__(self, draw: Callable[[MapRecipe], MapPicture]) -> None:
        """`draw` makes one picture: `picture_of` with its encoder, or `stored_picture`."""
        self._draw = draw
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="maps")
        self._made: OrderedDict[MapKey, Future[MapPicture]] = OrderedDict()
        self._lock = Lock()

    def get(self, recipe: MapRecipe) -> MapPicture:
        """The picture, once it is made; an error is raised here, and the next call tries again."""
        future = self._ask(recipe)
        try:
            return future.result()
        except Exception:
            with self._lock:
                self._made.pop(recipe.key, None)
            raise

    def prepare(self, recipes: Iterable[MapRecipe]) -> None:
        """Start to make these pictures, in this order."""
        for recipe in recipes:
            self._ask(recipe)

    def close(self) -> None:
        """Stop; pictures that were not started are not made."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _ask(self, recipe: MapRecipe) -> Future[MapPicture]:
        with self._lock:
            future = self._made.get(recipe.key)
            if future is None:
                future = self._worker.submit(self._draw, recipe)
                self._made[recipe.key] = future
            self._made.move_to_end(recipe.key)
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            return future
