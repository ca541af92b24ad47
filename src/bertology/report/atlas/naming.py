"""Stored results as the page names them: of which model, over which data, with which settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertology.results.provenance import short_model
from bertology.results.result import Result

_BELOW_MODELS = 3  # parts of `models/TASK-IDENTITY/MODEL-tuned`
_ANCHOR = 10  # characters of an identity, enough to tell results of one page apart


@dataclass(frozen=True)
class Entry:
    """A result, and what tells it from the others on the page."""

    result: Result
    task: str = ""  # what the model was fine-tuned on; empty: the model itself
    settings: str = ""  # parameters in which it differs from others that look alike

    @property
    def study(self) -> str:
        """Its study's name."""
        return self.result.provenance.study

    @property
    def data(self) -> str:
        """The name of its corpus; empty where there is none."""
        return str((self.result.provenance.corpus or {}).get("name") or "")

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"r-{self.result.identity[:_ANCHOR]}"

    @property
    def label(self) -> str:
        """`grammar`, `fine-tuned on mrpc`, `fine-tuned on mrpc, over rte` …"""
        over_several = self.result.provenance.over
        words = over_several or self.data or "weights alone"
        if self.task and not over_several:  # those are of several fine-tuned models
            # `mrpc (a-folder)` where several models were fine-tuned on the same task.
            same = self.task == self.data or self.task.startswith(f"{self.data} (")
            over = "" if same or not self.data else f", over {self.data}"
            words = f"fine-tuned on {self.task}{over}"
        return f"{words} ({self.settings})" if self.settings else words

    @property
    def level(self) -> float:
        """The level of its intervals."""
        asked = self.result.provenance.parameters.get("level")
        return float(asked) if isinstance(asked, int | float) else 0.95


def entries_of(groups: Iterable[tuple[str, Sequence[Result]]]) -> tuple[Entry, ...]:
    """Entries of all results, task by task (the model itself has none), study by study."""
    found = [Entry(result, task) for task, results in groups for result in results]
    found.sort(key=lambda e: (e.study, e.task, e.data, e.result.identity))
    alike: dict[tuple[str, ...], list[Entry]] = {}
    for entry in found:
        alike.setdefault((entry.study, entry.task, entry.data), []).append(entry)
    return tuple(
        replace(entry, settings=_differing(entry, alike[entry.study, entry.task, entry.data]))
        for entry in found
    )


def _differing(entry: Entry, alike: Sequence[Entry]) -> str:
    """The settings that not all of `alike` share; the data's size where those are the same."""
    if len(alike) == 1:
        return ""
    asked = [e.result.provenance.parameters for e in alike]
    names = [n for n in asked[0] if any(a.get(n) != asked[0][n] for a in asked)]
    own = entry.result.provenance
    told = [f"{in_words(n)} {_shown(own.parameters.get(n))}" for n in names]
    corpus = own.corpus or {}
    return ", ".join(told) or f"{corpus.get('size')} examples, {own.identity[:6]}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "not set" if value in (None, "") else short_name(str(value))


def in_words(name: str) -> str:
    """`head-ablation` as `head ablation`."""
    return name.replace("-", " ").replace("_", " ")


def counted(n: int, thing: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{n} {thing}{'' if n == 1 else 's'}"


def short_name(model: str) -> str:
    """A model's name without the folders it lies in; a hub id stays whole."""
    path = model.startswith(("/", ".", "~")) or model.count("/") > 1
    return short_model(model) if path else model


def portable_name(path: str) -> str:
    """A path for a command on any machine: from `models` on, where fine-tuned models lie.

    Of other folders only the name is left, as one here: what is above it is a machine's own.
    """
    if not path.startswith(("/", "~")) or not path.strip("/~"):
        return path
    parts = Path(path.rstrip("/")).parts[-_BELOW_MODELS:]
    return "/".join(parts) if parts[0] == "models" else f"./{parts[-1]}"


def shortened(command: str) -> str:
    """A command without the folders of the machine it was given on."""
    words = command.split(" ")
    return " ".join(portable_name(w) if w.startswith(("/", "~/")) else w for w in words)
