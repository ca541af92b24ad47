"""Results made of what was measured: statistics only, in seconds, and without the model."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bertology.run.stored_parts import StoredParts

if TYPE_CHECKING:
    from bertology.results.measured import Measurement
    from bertology.results.provenance import Provenance
    from bertology.results.result import Result
    from bertology.results.store import Store
    from bertology.studies.study import Study

KEEP_PARTS = 10**9
"""Bytes: what was measured is kept if it is not larger, where the user does not say."""


def conclude(
    store: Store,
    study: Study,
    measurement: Measurement,
    provenance: Provenance,
    *,
    keep: int | None = None,
) -> Result:
    """Conclude, and store the result; measurements of more than `keep` bytes are then dropped.

    What `provenance` cannot know without the model is taken from the measurement.
    """
    started, measured = time.monotonic(), store.measured
    about = measurement.provenance
    parts = StoredParts(measured, measurement.key, [part.name for part in measurement.parts])
    complete = replace(
        provenance, measured=measurement.named(), cut=about.cut, unknown=about.unknown
    )
    result: Result = study.conclude(parts, complete)
    spent = about.duration + time.monotonic() - started
    result.provenance = replace(result.provenance, duration=spent)
    store.save(result)
    if keep is not None and measurement.bytes > keep:
        measured.drop(measurement.key)
    else:
        measured.end(measurement.key)
    return result
