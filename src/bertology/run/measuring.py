"""The studies that `bertology report --measure` runs: of one model, or of two that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bertology.errors import BertologyError, CapabilityError, DataError, ModelError
from bertology.report.atlas.naming import short_name
from bertology.report.atlas.side_by_side import LeftOut
from bertology.run.loading import ModelSource
from bertology.run.requirements import check_corpus
from bertology.studies import STUDIES
from bertology.studies.study import TASK, TEXTS, Study

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.run.session import Session

EXAMPLES = 300  # that are read where the user does not say
_MORE = 1000  # of corpora that a study names: probes need more, and are scored on a fifth
_OF_WORDS = ("mlm", "pretraining")  # heads that predict masked words


@dataclass
class Measuring:
    """Runs quick studies over the same data on one model or on two, and notes what cannot be run.

    `texts` are what standard studies read; `task` is what classifiers are asked, if it is known.
    """

    session: Session
    texts: Corpus
    task: Corpus | None = None
    limit: int | None = None
    device: str = "auto"
    tell: Callable[[str], None] = lambda text: None
    left_out: list[LeftOut] = field(default_factory=list)

    def run(self, model: str, *, compared: bool = False) -> None:
        """Measure a model; with `compared`, also what two models are compared by.

        What could not be asked of an earlier model is not asked of this one. A model that cannot be
        asked anything at all is refused with the reason.
        """
        opened = _Opened(ModelSource(model, device=self.device))
        aside = {(one.study, one.data) for one in self.left_out}
        asked = [each for each in self._asked(compared) if _place(*each) not in aside]
        done, first = 0, None
        for number, (name, data) in enumerate(asked, start=1):
            try:
                corpus = self._corpus(name, data)
                study = STUDIES.get(name)()
                check_corpus(name, study, corpus)
                encoder = opened.encoder(study)
                self.tell(
                    f"  {number}/{len(asked)}  {name} over {corpus.name} ({len(corpus)} examples)"
                )
                self.session.run(name, study, encoder, corpus)
                done += 1
            except (CapabilityError, ModelError, DataError) as error:
                first = first or error
                # A page says what a model is called, and not where it lies on this machine.
                why = error.problem.replace(model, short_name(model))
                self.left_out.append(LeftOut(*_place(name, data), why))
        if not done and first is not None:
            raise first

    def _asked(self, compared: bool) -> Iterator[tuple[str, str]]:
        """Studies, and the data that each is asked over."""
        for name in STUDIES:
            kind = STUDIES.get(name)
            if kind.standard:
                yield name, TEXTS
            if compared:
                yield from ((name, data) for data in kind.compared_over)

    def _corpus(self, name: str, data: str) -> Corpus:
        from bertology.data.loading import load_corpus

        kind = STUDIES.get(name)
        if data == TEXTS or (data == TASK and self.task is None and not kind.needs.task):
            return self.texts
        if data == TASK or kind.needs.task:
            if self.task is None:
                raise CapabilityError(
                    "What task these models have learnt is not recorded; --task names it."
                )
            if data == TASK:
                return self.task
        found = load_corpus(data, limit=self.limit or _MORE)
        if kind.needs.task and not _one_question(found, self.task):
            raise CapabilityError(
                f"{found.name!r} asks what follows from a text; the task of these models, "
                f"{self.task.name if self.task else ''!r}, does not."
            )
        return found


def _place(study: str, data: str) -> tuple[str, str]:
    return study, "" if data in (TEXTS, TASK) else data


def _one_question(corpus: Corpus, task: Corpus | None) -> bool:
    """Whether what is asked of pairs that mislead is what the models have learnt."""
    from bertology.data.tasks import is_inference

    return task is not None and is_inference(corpus) and is_inference(task)


class _Opened:
    """A model with each head that is asked for, opened once."""

    def __init__(self, source: ModelSource) -> None:
        self._source = source
        self._found: dict[str, Encoder | BertologyError] = {}

    def encoder(self, study: Study) -> Encoder:
        """With the head that the study needs; a lack is told in words."""
        saved, head = self._open("saved"), study.needs.head
        if head in _OF_WORDS and saved.head not in _OF_WORDS:
            raise CapabilityError(
                f"{saved.name!r} was saved with the head {saved.head!r}, which predicts no masked "
                "words."
            )
        if head in ("base", "saved") and not saved.capabilities:
            raise CapabilityError(
                f"{saved.name!r} is a {saved.family.title}: it has no layers of attention to look "
                "into."
            )
        return self._open(head)

    def _open(self, head: str) -> Encoder:
        if head not in self._found:
            try:
                self._found[head] = self._source.load(head)
            except BertologyError as error:
                self._found[head] = error
        found = self._found[head]
        if isinstance(found, BertologyError):
            raise found
        found.require_tokenizer()
        return found


def recorded_task(model: str, limit: int | None = None) -> Corpus | None:
    """The held-out data of a model's task, as the record in its folder tells; None: it does not."""
    from bertology.data.loading import load_corpus
    from bertology.train.checkpoint import read_record

    try:
        record: Mapping[str, Any] = read_record(model) or {}
        origin = dict((record.get("validation") or {}).get("origin") or {})
        found = load_corpus(**origin) if "name_or_path" in origin else None
    except (BertologyError, TypeError):
        return None  # data that are gone leave the rest to be compared
    return found if found is None or found.task is None else found.take(limit)
