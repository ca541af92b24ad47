"""`bertology datasets`: the catalogue of corpora."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.cli.command import command
from bertology.cli.console import say, show_table
from bertology.cli.option_groups import RootOptions
from bertology.cli.typer_options import argument


@dataclass(frozen=True, kw_only=True)
class DatasetsOptions(RootOptions):
    """The options of `datasets`."""

    query: list[str] | None = argument(
        "A name, or words to find in name, title, task, fields or citation.", None
    )


@command(
    "datasets",
    [DatasetsOptions],
    examples=[
        "bertology datasets",
        "bertology datasets paraphrase",
        "bertology datasets senses",
        "bertology datasets similar words",
        "bertology datasets mrpc --root ./data",
    ],
)
def list_datasets(options: DatasetsOptions) -> None:
    """List or search the corpora. With the name of one: all about it, and how to get it."""
    from bertology.data import catalog
    from bertology.data.loading import describe

    root = options.root
    words = " ".join(options.query or [])
    named = [e for e in catalog.entries().values() if words in (e.name, *e.aliases)]
    found = named or catalog.find(words)
    if not found:
        say(f"No corpus has all of {words!r}. See them all with: bertology datasets")
        return
    if len(found) == 1:
        _show(found[0].name, root)
        return
    rows = []
    for entry in found:
        task = entry.task.kind if entry.task else None
        here = "yes" if describe(entry.name, root=root).present else "no"
        rows.append((entry.name, entry.title, task, here, ", ".join(sorted(entry.fields))))
    show_table(("corpus", "title", "task", "here", "fields"), rows)
    say("More about one of them, and how to get it: bertology datasets NAME")


def _show(name: str, root: str | None) -> None:
    from bertology.data.loading import describe

    about = describe(name, root=root)
    entry = about.entry
    say(entry.name, style="bold")
    say(entry.title)
    say()
    if entry.task is not None:
        labels = f": {', '.join(entry.task.labels)}" if entry.task.labels else ""
        say(f"Task:     {entry.task.kind}{labels}")
        say(f"Scored:   {', '.join(entry.task.metrics)}")
    say(f"Fields:   {', '.join(sorted(entry.fields))}")
    say(f"Splits:   {', '.join(entry.splits)}")
    say(f"Source:   {entry.source}")
    say(f"Licence:  {entry.licence}")
    if about.folder is None:
        say("Here:     yes (it is generated)")
    else:
        say(f"Here:     {'yes' if about.present else 'no'} ({about.folder})")
    if not about.present:
        say(f"Get it:   {about.how_to_get}")
