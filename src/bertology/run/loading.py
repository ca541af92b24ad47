"""Models and corpora by name: loaded for a study, with notes on what the reader must know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.run.model_description import describe_model
from bertology.run.others import resolve_others
from bertology.run.requirements import label_match
from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

__all__ = ["ModelSource", "notes_on", "resolve_corpus"]


@dataclass(frozen=True)
class ModelSource:
    """A model by name, and how it may be loaded: the keywords of `Encoder.load`."""

    name: str = DEFAULT_MODEL
    device: str = "auto"
    num_labels: int | None = None
    dtype: str = "float32"
    allow_pickle: bool = False
    trust_remote_code: bool = False

    def load(self, head: str = "base") -> Encoder:
        """The model with this head."""
        from bertology.model.encoder import Encoder

        return Encoder.load(
            self.name,
            head=head,
            device=self.device,
            num_labels=self.num_labels,
            dtype=self.dtype,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )

    def load_others(
        self, study: Study, encoder: Encoder, given: dict[str, Encoder]
    ) -> dict[str, Encoder]:
        """The other models that the study's parameters name, loaded under the same permissions."""
        return resolve_others(
            study,
            encoder,
            given,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )


def resolve_corpus(
    given: str | Corpus,
    *,
    must_have_task: bool,
    labels: Mapping[str, str] | None = None,
    **options: Any,
) -> Corpus:
    """The corpus itself; one that is named is loaded with `options` of `load_corpus`.

    `labels` are other names for its labels, such as those that the model has for them.
    """
    if isinstance(given, str):
        from bertology.data.loading import load_corpus

        given = load_corpus(given, **options)
    if not isinstance(given, Corpus):
        raise ParameterError(
            "task" if must_have_task else "corpus",
            "run",
            "be a name, a path or a Corpus; save your own texts in a file, one text per line",
            type(given).__name__,
        )
    if must_have_task and given.task is None:
        raise CapabilityError(
            f"{given.name!r} has no task: it has {', '.join(sorted(given.fields))} and no label.",
            hint="Say which column holds the labels, as in label='gold' (--columns label=gold). "
            "A study that needs no labels takes it as corpus= (--corpus). See which corpora have "
            "a task with: bertology datasets",
        )
    return given.relabelled(labels) if labels else given


def notes_on(study: Study, encoder: Encoder, corpus: Corpus | None) -> Iterator[str]:
    """What makes the numbers of this run say less than they seem to."""
    head = study.needs.head
    if encoder.new_weights and head != "base":
        yield f"The {head} head has random weights: its scores are at chance level."
    origin = describe_model(encoder).get("tuned_from")
    learned = origin.get("task") if isinstance(origin, dict) else None
    if not study.needs.task or corpus is None or learned in (None, corpus.name):
        return
    # The names of two files do not say whether they are of one task; their labels do.
    if _is_listed(str(learned)) or not _same_labels(study, encoder, corpus):
        yield f"This model was fine-tuned for {learned}, not for {corpus.name}."


def _same_labels(study: Study, encoder: Encoder, corpus: Corpus) -> bool:
    match = label_match(study, encoder, corpus)
    return match is not None and match["by"] == "name"


def _is_listed(name: str) -> bool:
    """Whether the catalogue has data of that name."""
    from bertology.data import catalog

    try:
        catalog.get(name)
    except UnknownNameError:
        return False
    return True
