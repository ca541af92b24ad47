"""Results made of what was measured: statistics only, in seconds, and without the model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from bertology.errors import BertologyError, StoreError
from bertology.results.measured import measurement_key
from bertology.results.provenance import library_versions, now
from bertology.run.plan import as_tuples, study_from
from bertology.run.stored_parts import StoredParts
from bertology.studies import JOINS, STUDIES
from bertology.studies.study import concluding_parameters

if TYPE_CHECKING:
    from bertology.results.measured import Measurement
    from bertology.results.provenance import Provenance
    from bertology.results.result import Result
    from bertology.results.store import Store
    from bertology.studies.study import Question, Study


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


# Again ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Again:
    """One conclusion that was drawn again, or why it was not."""

    about: Provenance
    """Of the result that was there; of the measurement, where there was none."""
    result: Result | None = None
    how: str = ""
    """same, changed or new, beside what was stored; or why it was not concluded."""


class Concluding:
    """Concludes again what is stored, without the model: studies, then the joins that rest on them.

    `given` are parameters that only conclude, by name, in place of those that results have.
    """

    def __init__(self, store: Store, given: Mapping[str, object], command: str | None) -> None:
        self._store, self._given, self._command = store, given, command
        self._found = store.list()
        self._records = {record.key: record for record in store.measured.records()}
        self._renamed: dict[str, str] = {}  # identities of before, and what they are now

    def chosen(self, what: str | None) -> list[Provenance]:
        """The results that a study's name, or the start of an identity or of a key, means.

        A measurement without a result counts as one. None: all there is.
        """
        measured = {key_of(p) for p in self._found}
        bare = [
            replace(record.provenance, measured={"key": key})
            for key, record in self._records.items()
            if key not in measured
        ]
        every = [*self._found, *bare]
        if what is None:
            return every
        study, _, prefix = what.rpartition("/")
        if (named := [p for p in every if p.study == what]) or what in (*STUDIES, *JOINS):
            return named
        found = [
            p for p in every
            if study in ("", p.study)
            and (p.identity.startswith(prefix) or (key_of(p) or "").startswith(prefix))
        ]  # fmt: skip
        if not found:
            self._store.folder(what)  # says in words that there is none
        return found

    def again(self, chosen: Sequence[Provenance]) -> Iterator[Again]:
        """Conclude each of them, the newest of several that come to the same; then joins."""
        studies = [p for p in chosen if p.study not in JOINS]
        done = dict[tuple[str, str], str]()
        for p in studies:
            job = self._job(p)
            if isinstance(job, str):
                yield Again(p, how=job)
                continue
            study, record, about = job
            asked = (record.key, json.dumps(study.parameters, sort_keys=True))
            if asked not in done:
                outcome = self._concluded(p, study, record, about)
                yield outcome
                if outcome.result is None:
                    continue
                done[asked] = outcome.result.identity
            self._renamed[p.identity] = done[asked]
        joins = {p.identity: p for p in chosen if p.study in JOINS}
        for p in sorted(self._found, key=lambda p: p.created):
            if p.study in JOINS and (p.identity in joins or self._rests_on_concluded(p)):
                yield self._joined(p)

    def _job(self, p: Provenance) -> tuple[Study, Measurement, Provenance] | str:
        """The study as it is now, what it measured, the new provenance; or why there is none."""
        again = f"bertology run {p.study} --force, as it was run, measures it again"
        record = self._records.get(key_of(p) or "")
        if p.study not in STUDIES:
            return f"the study {p.study!r} is not installed here"
        if record is None:
            return f"what was measured for it was not kept; {again}"
        if not record.kept:
            return f"what was measured for it was dropped; {again}"
        kind = STUDIES.get(p.study)
        parameters = self._parameters(kind, p.parameters, concluding_parameters(kind))
        try:
            study = study_from(kind, {**record.parameters, **parameters})
        except TypeError:
            return f"its parameters have changed since; {again}"
        key = measurement_key(kind.measured_version, study.measuring_parameters, record.provenance)
        if key != record.key:
            return f"the study measures other things since; {again}"
        parts = [part.name for part in record.parts]
        lost = len(parts) - len(self._store.measured.sound_parts(record.key, parts))
        if lost:
            return f"{lost} of {len(parts)} parts are damaged or gone; {again}"
        about = replace(
            p,
            study_version=kind.version,
            parameters=study.parameters,
            versions=library_versions(),
            created=now(),
            command=self._command,
        )
        return study, record, about

    def _parameters(
        self, kind: type[Question], before: Mapping[str, object], names: Iterable[str]
    ) -> dict[str, object]:
        """What the result was concluded with, and what is given instead."""
        known = {f.name for f in fields(kind)}.intersection(names)
        return {n: v for n, v in {**before, **self._given}.items() if n in known}

    def _concluded(
        self, p: Provenance, study: Study, record: Measurement, about: Provenance
    ) -> Again:
        before = self._before(about)
        result = conclude(self._store, study, record, about)
        return Again(p, result, _how(before, result))

    def _before(self, about: Provenance) -> Result | None:
        try:
            return self._store.load(about) if self._store.has(about) else None
        except StoreError:
            return None  # a damaged result is written again

    def _rests_on_concluded(self, p: Provenance) -> bool:
        return any(identity in self._renamed for identity in _identities(p.results))

    def _joined(self, p: Provenance) -> Again:
        kind = JOINS.get(p.study)
        sources = [self._renamed.get(i, i) for i in _identities(p.results)]
        names = [f.name for f in fields(kind)]
        parameters = self._parameters(kind, p.parameters, names)
        given: dict[str, Any] = {name: as_tuples(value) for name, value in parameters.items()}
        try:
            join = kind(**given)
            made = join.join([self._store.load(source) for source in sources])
        except BertologyError as error:
            return Again(p, how=error.problem)
        result = replace(made, provenance=replace(made.provenance, command=self._command))
        before = self._before(result.provenance)
        self._store.save(result)
        self._renamed[p.identity] = result.identity
        return Again(p, result, _how(before, result))


def key_of(p: Provenance) -> str | None:
    """The key of the measurement that a result comes from, as far as it says so."""
    return None if p.measured is None else str(p.measured["key"])


def _identities(made_of: object) -> list[str]:
    """The identities in what a combined result says of its sources, in their order."""
    if isinstance(made_of, str):
        return [made_of]
    inside = made_of.values() if isinstance(made_of, Mapping) else made_of
    return [i for one in inside for i in _identities(one)] if isinstance(inside, Iterable) else []


def _how(before: Result | None, now: Result) -> str:
    if before is None:
        return "new"
    return "same" if before.same_content(now) else "changed"
