"""Examples to begin with: some of ours, and examples of the corpora on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from bertology.data import catalog
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.loading import describe, load_corpus
from bertology.errors import BertologyError, UnknownNameError

_FIRST_EXAMPLES: tuple[tuple[str, str | None], ...] = (
    ("The keys to the old cabinet are on the table.", None),
    ("The dog that chased the cats was barking because it was hungry.", None),
    ("The nurse thanked the doctor, but she never heard from him again.", None),
    ("A man is playing the guitar.", "Somebody makes music."),
)
_KEPT = 200  # examples of each corpus


def first_examples(*, pairs: bool) -> list[tuple[str, str | None]]:
    """Our examples; the page opens with the first. With `pairs`, pairs of texts come first."""
    return sorted(_FIRST_EXAMPLES, key=lambda texts: pairs and texts[1] is None)


def is_about_pairs(task: str | None) -> bool:
    """Whether the examples of this task of the catalogue are pairs of texts."""
    tasks = (entry.task for entry in catalog.entries().values())
    return any(found.name == task and found.pair for found in tasks if found)


class TaskExamples:
    """Corpora by name; each is loaded when it is first needed, and then kept."""

    def __init__(self, root: Path | None = None, own: Sequence[Corpus] = ()) -> None:
        """`own`: corpora that the user gave; they come first, whatever the catalogue has."""
        self.root = root
        self._own = {corpus.name: corpus for corpus in own}
        self._loaded: dict[str, Corpus] = dict(self._own)
        self._lock = Lock()

    def tasks(self) -> list[dict[str, object]]:
        """The corpora that can be chosen: the user's own, and those whose files are here."""
        own = [{"name": name, "title": name, "own": True} for name in self._own]
        return own + [
            {"name": entry.name, "title": entry.title, "own": False}
            for entry in catalog.entries().values()
            if Field.TEXT in entry.fields
            and entry.name not in self._own
            and describe(entry.name, root=self.root).present
        ]

    def corpus(self, name: str) -> Corpus:
        """At most a few hundred examples of a corpus; only names of `tasks` are known."""
        with self._lock:
            if name not in self._loaded:
                names = [str(task["name"]) for task in self.tasks()]
                if name not in names:
                    raise UnknownNameError("task", name, names)
                self._loaded[name] = load_corpus(name, limit=_KEPT, root=self.root)
            return self._loaded[name]

    def example(self, name: str, number: int) -> dict[str, object]:
        """One example, counted from 0."""
        corpus = self.corpus(name)
        if not 0 <= number < len(corpus):
            raise BertologyError(
                f"There is no example {number}: there are {len(corpus)}, numbered from 0."
            )
        found = corpus[number]
        return {
            "task": name,
            "number": number,
            "total": len(corpus),
            "text": found.text,
            "pair": found.text_b,
            "label": label_name(corpus, found),
        }

    def find(self, text: str, pair: str | None) -> tuple[Corpus, Example] | None:
        """The example with exactly this text, among the corpora that are loaded."""
        with self._lock:
            corpora = list(self._loaded.values())
        every = ((corpus, example) for corpus in corpora for example in corpus)
        return next((f for f in every if (f[1].text, f[1].text_b) == (text, pair)), None)


def label_name(corpus: Corpus, example: Example) -> str | None:
    """The gold label of an example, as the corpus calls it; None if it has none."""
    if example.label is None:
        return None
    names = corpus.task.labels if corpus.task else ()
    if isinstance(example.label, int) and 0 <= example.label < len(names):
        return names[example.label]
    return f"{example.label:g}"
