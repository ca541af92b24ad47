"""The maps that come with the package, labelled by eye.

Their names speak of models as they were when the maps were labelled. The maps themselves are
stored, so they stay the same when a model of the same name is trained again.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import as_file, files

from bertology.data.map_labels import MapKey, MapLabel
from bertology.data.map_store import StoredMap, read_maps, read_stored_labels

_ANNOTATIONS = files("bertology") / "data" / "annotations"


def bundled_labels() -> list[MapLabel]:
    """The labels that come with the package, both passes."""
    with as_file(_ANNOTATIONS / "map-types.labels.parquet") as path:
        return read_stored_labels(path)


def bundled_maps() -> dict[MapKey, StoredMap]:
    """The maps that these labels are about."""
    with as_file(_ANNOTATIONS / "map-types.parquet") as path:
        return {stored.key: stored for stored in read_maps(path)}


@cache
def drawn(how: str) -> frozenset[MapKey]:
    """Labelled maps that were drawn in some way.

    `at_random`: text, layer and head by chance, whatever the map looks like. `for_learning`: many
    of them where an earlier network was unsure, so they do not say how good a network is.
    """
    found = json.loads((_ANNOTATIONS / "map-types.drawn.json").read_text(encoding="utf-8"))[how]
    return frozenset((m, c, s, e, int(layer), int(head)) for m, c, s, e, layer, head in found)
