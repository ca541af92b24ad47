"""What of the documentation is made when it is built: the reference, from code, and the navigation.

mkdocs calls `on_files` (`hooks:` in mkdocs.yml), so nothing of it is kept in files.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from enum import Enum
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parent
APART = InclusionLevel.NOT_IN_NAV
MEASURED = DOCS.parent / "benchmarks" / "results"


def cell(text: object) -> str:
    """One table cell: no line breaks, no stray column marks."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A Markdown table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join(" --- " for _ in head) + "|"
    for row in rows:
        yield "| " + " | ".join(cell(value) for value in row) + " |"


def page(title: str, lines: Iterable[str]) -> str:
    """A whole page."""
    return "\n".join([f"# {title}", "", *lines]).rstrip() + "\n"


def paragraphs(text: str | None) -> str:
    """A docstring as Markdown; the words that open its sections become bold."""
    openers = r"(^|\n\n|[.;]\s)(Question|Method|Source|Sources|Limits|Published):"
    return re.sub(openers, r"\1**\2:**", inspect.cleandoc(text or ""))


# ---------------------------------------------------------------- studies


def default_of(item: Field[Any]) -> str:
    """A parameter's default as it would be written."""
    if item.default is not MISSING:
        return f"`{item.default!r}`"
    if item.default_factory is not MISSING:
        return f"`{item.default_factory()!r}`"
    return "required"


def limits_of(item: Field[Any]) -> str:
    """What a parameter may be."""
    meta = item.metadata
    if "choices" in meta:
        return ", ".join(f"`{c}`" for c in meta["choices"])
    least, most = meta.get("minimum"), meta.get("maximum")
    if least is not None and most is not None:
        return f"{least} to {most}"
    if least is not None:
        return f"at least {least}"
    return f"at most {most}" if most is not None else ""


def needs_of(study: Any) -> str:
    """What must be there before the study starts, in one line."""
    needs = study.needs
    parts = [f"model head `{needs.head}`"]
    parts += [f"capability `{c}`" for c in sorted(needs.capabilities)]
    parts += [f"corpus field `{f}`" for f in sorted(needs.fields)]
    if needs.task:
        parts.append("a corpus with a task")
    return ", ".join(parts)


def built_in_studies() -> list[tuple[str, Any]]:
    """Names and classes; plugins that happen to be installed are left out."""
    from bertology.studies import STUDIES

    return _built_in(STUDIES)


def built_in_joins() -> list[tuple[str, Any]]:
    """The same for joins."""
    from bertology.studies import JOINS

    return _built_in(JOINS)


def _built_in(registry: Any) -> list[tuple[str, Any]]:
    found = [(name, registry.get(name)) for name in registry.names()]
    return [(n, s) for n, s in found if s.__module__.startswith("bertology.studies.")]


def studies() -> str:
    """Every study and every join: its docstring, its needs or sources, its parameters."""
    lines = [
        "Each study is a frozen dataclass; its fields are its parameters, in Python and as",
        "options of `bertology run`. Indices of layers and heads start at 0. At the end stand the",
        "[joins](#joins), which need no model: they combine the results of studies.",
        "",
    ]
    for name, study in built_in_studies():
        lines += [f"## {name}", "", paragraphs(study.__doc__), ""]
        lines += [f"**Needs:** {needs_of(study)}. **Version:** {study.version}.", ""]
        lines += [*parameters_of(study), "", *judged_by(name)]
    lines += ["## Joins", "", "A join makes one answer of the stored answers of studies.", ""]
    for name, join in built_in_joins():
        lines += [f"### {name}", "", paragraphs(join.__doc__), ""]
        sources = ", ".join(f"[{s}](#{s})" for s in join.sources) or "any study"
        lines += [f"**Takes results of:** {sources}. {join.made_by} **Version:** {join.version}."]
        lines += ["", *parameters_of(join), "", *judged_by(name)]
    return page("Studies", lines)


def parameters_of(question: Any) -> Iterator[str]:
    """A row for each parameter."""
    rows = [
        (f"`{f.name}`", f.metadata.get("help", ""), default_of(f), limits_of(f))
        for f in fields(question)
    ]
    return table(("parameter", "what it is", "default", "may be"), rows)


def judged_by(name: str) -> list[str]:
    """The claims that a study or join judges, if there are any."""
    from bertology.results.known_claims import load_claims

    judged = [c for c in load_claims() if c.study == name]
    links = ", ".join(f"[{c.id}](claims.md#{anchor(c.id)})" for c in judged)
    return [f"**Claims it judges:** {links}.", ""] if judged else []


# ---------------------------------------------------------------- claims


def anchor(text: str) -> str:
    """The anchor that Markdown gives a heading."""
    kept = "".join(c for c in text.lower() if c.isalnum() or c in " -_")
    return "-".join(kept.split())


def claims() -> str:
    """Every claim: source, what was published, how it is judged."""
    from bertology.results.known_claims import load_claims
    from bertology.results.verdicts import OURS

    joins = dict(built_in_joins())
    known = dict(built_in_studies()) | joins
    listed = [c for c in load_claims() if c.study in known]
    lines = [
        "A claim is a statement of the literature with a rule that judges it. The rule looks at",
        "an interval, never at a bare number: the claim **holds** when the whole interval",
        "satisfies the rule, **fails** when none of it does, and is **inconclusive** when the",
        "interval straddles the border. Where a rule has a margin, what is less does not matter:",
        "the claim holds when the whole interval is beyond the margin, is **negligible** when what",
        "is claimed is surely less, and its **size is open** when it is surely there, but perhaps",
        "less. It is",
        "**not judged** when the result does not have the quantity, or the paper does not say it",
        "of the task. `bertology claims` lists and searches them.",
        "",
    ]
    for claim in listed:
        kind = "Join" if claim.study in joins else "Study"
        lines += [
            f"## {claim.id}",
            "",
            f"> {claim.statement}",
            "",
            f"**Source:** {claim.source}. **Published:** {claim.published.text}",
            "",
            f"**{kind}:** [{claim.study}](studies.md#{claim.study}). **Rule:** {claim.rule}."
            + (f" **Tasks:** {claim.tasks}." if claim.tasks else "")
            + (f" **Ours:** {OURS}." if claim.ours else ""),
            "",
            claim.explanation,
            "",
        ]
    return page("Claims", lines)


# ---------------------------------------------------------------- corpora


def corpora() -> str:
    """The catalogue: what can be loaded by name."""
    from importlib.resources import files

    from bertology.data.catalog import read_entry

    texts = sorted(files("bertology.data.catalog").iterdir(), key=lambda f: f.name)
    entries = [
        read_entry(f.read_text(encoding="utf-8"), where=f.name)
        for f in texts
        if f.name.endswith(".yaml")
    ]
    lines = [
        "What `load_corpus(name)` and `--task`/`--corpus` know by name. Corpora read by `grammar`",
        "are made on the spot and need nothing; the others are read from `$BERTOLOGY_DATA`.",
        "`bertology datasets` says which of them are on your machine and how to get the rest.",
        "",
    ]
    rows = [
        (
            f"`{e.name}`",
            e.title,
            e.reader,
            f"{e.task.kind} ({', '.join(e.task.metrics)})" if e.task else "",
            ", ".join(e.fields),
            e.licence,
        )
        for e in entries
    ]
    lines += table(("name", "what it is", "reader", "task", "fields", "licence"), rows)
    return page("Corpora", lines)


# ---------------------------------------------------------------- command line


def command_line() -> str:
    """Every command: its help, arguments and options."""
    import typer

    from bertology.cli.main import app

    lines = ["Every command answers to `--help` with what is on this page.", ""]
    lines += command(typer.main.get_command(app), None, "bertology")
    return page("Command line", lines)


def command(node: Any, parent: Any, path: str) -> Iterator[str]:
    """One command and those below it."""
    context = node.context_class(node, parent=parent, info_name=path.split()[-1])
    yield f"{'#' * min(len(path.split()) + 1, 4)} {path}"
    yield from ["", f"```text\n{path} {' '.join(node.collect_usage_pieces(context))}\n```", ""]
    yield paragraphs(node.help)
    yield ""
    rows = [row for p in node.params if (row := option(p))]
    if rows:
        yield from table(("option", "what it is", "default"), rows)
        yield ""
    examples = [line.strip() for line in (node.epilog or "").splitlines() if line.strip()]
    if len(examples) > 1:
        yield from ["```sh", *examples[1:], "```", ""]
    for name in node.list_commands(context) if hasattr(node, "list_commands") else ():
        if not path.endswith(" run") or name in dict(built_in_studies()):
            yield from command(node.get_command(context, name), context, f"{path} {name}")


def option(parameter: Any) -> tuple[str, str, str] | None:
    """A row for an option or argument; nothing for hidden ones and --help."""
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return None
    if parameter.param_type_name == "argument":
        shown = parameter.metavar or parameter.name.upper()
        return f"`{shown}`", parameter.help or "", "required" if parameter.required else ""
    names = ", ".join(f"`{o}`" for o in [*parameter.opts, *parameter.secondary_opts])
    shown = parameter.show_default
    if parameter.required:
        default = "required"
    elif isinstance(shown, str):
        default = f"`{shown}`"
    elif parameter.default in (None, False, "") or callable(parameter.default):
        default = ""
    else:
        default = f"`{parameter.default}`"
    return names, parameter.help or "", default


# ---------------------------------------------------------------- Python


def python() -> str:
    """Everything that `import bertology` offers, with the first paragraph of its docstring."""
    import bertology

    lines = [
        "`import bertology as bt` offers these names, each imported when it is first used.",
        "Layers and heads count from 0; what leaves the embeddings is called `embeddings`.",
        "",
    ]
    for name in bertology.__all__:
        if name.startswith("__"):
            continue
        thing = getattr(bertology, name)
        if inspect.ismodule(thing):  # `run` and `studies` are packages that can be called
            thing = thing.__call__
        lines += [f"## bt.{name}", ""]
        if callable(thing) and not is_error_or_enum(thing):
            lines += [f"```python\n{signature(name, thing)}\n```", ""]
        if inspect.isclass(thing) or inspect.isroutine(thing):
            lines += [paragraphs(inspect.getdoc(thing)), ""]
        else:
            lines += [f"The registry of every {thing.kind}, built in or brought by a plugin.", ""]
    return page("Python", lines)


def is_error_or_enum(thing: Any) -> bool:
    """Things whose signature tells a reader nothing."""
    return inspect.isclass(thing) and issubclass(thing, (Exception, Enum))


def signature(name: str, thing: Any) -> str:
    """A signature on one line if it fits, else one parameter a line."""
    found = inspect.signature(thing)
    pieces, starred = [], False
    for p in found.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not starred:
            pieces.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        pieces.append(argument(p))
    returns = found.return_annotation
    end = "" if returns in (found.empty, None, "None") else f" -> {returns}"
    line = f"bt.{name}({', '.join(pieces)}){end}"
    if len(line) <= 90:
        return line
    return f"bt.{name}(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){end}"


def argument(p: inspect.Parameter) -> str:
    """One parameter as it is written in code; annotations are text there, not quoted text."""
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    kind = "" if p.annotation is p.empty else f": {p.annotation}"
    if p.default is p.empty:
        return f"{stars}{p.name}{kind}"
    default = "…" if "factory" in repr(p.default) else repr(p.default)
    return f"{p.name}{kind}{' = ' if kind else '='}{default}"


# ---------------------------------------------------------------- families


def families() -> str:
    """Families × capabilities: what a family's row says, all of it held by tests."""
    from bertology.model.families import FAMILIES, Capability

    own = built_in_families()
    rows = [
        (
            family.title,
            f"`{name}`",
            ", ".join(family.stacks),
            *("✓" if c in family.capabilities else "–" for c in Capability),
        )
        for name in FAMILIES.names()
        if name in own
        for family in [FAMILIES.get(name)]
    ]
    lines = [
        "One row per family, named by the `model_type` of its config. ✓: the family's row says so,",
        "and the conformance tests hold it on a small random model. –: the family cannot give it,",
        "and a study that needs it refuses before any work.",
        "",
        *table(("family", "model type", "stacks", *(c.value for c in Capability)), rows),
        "",
        "## What the capabilities mean",
        "",
        *capability_meanings(),
    ]
    return page("Families and capabilities", lines)


def built_in_families() -> set[str]:
    """Names that no entry point brought."""
    from importlib.metadata import entry_points

    from bertology.model.families import FAMILIES

    return set(FAMILIES.names()) - {e.name for e in entry_points(group="bertology.families")}


def capability_meanings() -> Iterator[str]:
    """The comments beside the members of Capability, which is where they are explained."""
    from bertology.model.families import Capability

    for line in inspect.getsource(Capability).splitlines():
        code, mark, comment = line.partition("  # ")
        if mark and "=" in code:
            yield f"- `{code.split('=')[1].strip().strip(chr(34))}`: {comment}"


# ---------------------------------------------------------------- compression


def compression() -> str:
    """Every method of compression: its docstring, its source, its options."""
    from bertology.train.compress import METHODS

    lines = [
        "Methods of `bertology compress --method NAME:OPTION=VALUE,…`, and of `bt.compress`. The",
        "[guide](../how-to/compress.md) shows how they are used one after the other.",
        "",
    ]
    for name in METHODS.names():
        kind = METHODS.get(name)
        if not kind.__module__.startswith("bertology.train.compress."):
            continue
        source = f" ({kind.source})" if kind.source else ""
        lines += [f"## {name}", "", f"{kind.summary[:1].upper()}{kind.summary[1:]}{source}.", ""]
        lines += [paragraphs(kind.__doc__), "", *parameters_of(kind), ""]
    return page("Methods of compression", lines)


# ---------------------------------------------------------------- rooms


def rooms() -> str:
    """What each package says of itself, in the order of the folders."""
    lines = ["What each package says of itself in its `__init__.py`."]
    for path in sorted((DOCS.parent / "src" / "bertology").rglob("*/__init__.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        name = path.parent.relative_to(DOCS.parent / "src" / "bertology").as_posix()
        first, _, rest = said.partition("\n\n")
        lines += ["", f"## {name}/", "", first, *(["", rest] if rest else [])]
    return page("Rooms of the house", lines)


# ---------------------------------------------------------------- reproductions


def headline(text: str) -> str:
    """What a page of numbers found: `headline` of its front matter, or its count of verdicts."""
    given = re.search(r'^headline: "(.*)"$', text, re.MULTILINE)
    counted = re.search(r"^## Verdicts\n\n(.+)$", text, re.MULTILINE)
    found = given or counted
    return found.group(1).replace('\\"', '"') if found else ""


def by_folder() -> Mapping[str, list[Path]]:
    """Pages of numbers: those of a paper under its title, then those of a topic."""
    from bertology.reproduce import PAPERS

    found = {}
    folders = [folder for folder in (DOCS / "reproductions").iterdir() if folder.is_dir()]
    for folder in sorted(folders, key=lambda f: (f.name not in PAPERS, f.name)):
        paper = folder.name in PAPERS
        title = PAPERS.get(folder.name).title if paper else folder.name.capitalize()
        found[title] = sorted(folder.glob("*.md"))
    return found


def reproductions() -> str:
    """Every page of numbers with its headline."""
    lines = [
        "What papers say, measured here. Each page has the commands, the numbers with intervals,",
        "the published ones beside them, and what differs. Beside the link stands what it found.",
        "Pages that count no verdict of *size open* were judged by earlier, in part milder rules:",
        "a control could make a claim fail, and what was there held, however small it may be.",
        "",
    ]
    for title, pages in by_folder().items():
        lines += [f"## {title}", ""]
        for path in pages:
            text = path.read_text(encoding="utf-8")
            name = re.findall(r"^# (.+)", text, re.MULTILINE)[0]
            lines.append(f"- [{name}]({path.parent.name}/{path.name}): {headline(text)}")
        lines.append("")
    return page("Reproductions", lines)


# ---------------------------------------------------------------- home


def papers_and_topics() -> Iterator[str]:
    """Where the pages of numbers are, for the home page."""
    for title, pages in by_folder().items():
        count = "1 page" if len(pages) == 1 else f"{len(pages)} pages"
        yield f"- [{title}](reproductions/index.md#{anchor(title)}), {count}"


def commands() -> Iterator[str]:
    """Every command in a line, for the home page."""
    import typer

    from bertology.cli.main import app

    for name, node in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        about = " ".join((node.help or "").strip().partition("\n\n")[0].split())
        yield f"- [`bertology {name}`](reference/cli.md#bertology-{name}): {about}"


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Fill in what the home page leaves to be found."""
    if page.file.src_uri != "index.md":
        return markdown
    markdown = markdown.replace("<!-- papers and topics -->", "\n".join(papers_and_topics()))
    return markdown.replace("<!-- commands -->", "\n".join(commands()))


# ---------------------------------------------------------------- benchmarks


def benchmarks() -> str:
    """Which script measured what, and when last."""
    rows = []
    for path in sorted(MEASURED.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        titles = re.findall(r"^##? (.+)", text, re.MULTILINE)
        name = path.relative_to(MEASURED).with_suffix("").as_posix()
        runs = re.findall(r"20\d\d-\d\d-\d\d", text)
        rows.append(
            (f"[{name}](../benchmarks/{name}.md)", "; ".join(titles), max(runs, default=""))
        )
    lines = [
        "Each figure is a ratio within one run; the scripts in `benchmarks/` make them again.",
        "Seconds say little about your machine, ratios more. What a script measured is in the file",
        "of its name in `benchmarks/results/`, the newest run on top, with its machine and date.",
        "",
        *table(("script", "what it measures", "newest run"), rows),
    ]
    return page("Benchmarks", lines)


# ---------------------------------------------------------------- all of it

REFERENCE: Mapping[str, Callable[[], str]] = {
    "cli": command_line,
    "python": python,
    "studies": studies,
    "claims": claims,
    "corpora": corpora,
    "families": families,
    "compression": compression,
    "rooms": rooms,
}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the reference and what benchmarks measured, and put all pages into the navigation."""
    for name, make in REFERENCE.items():
        files.append(File.generated(config, f"reference/{name}.md", content=make()))
    for path in sorted(MEASURED.rglob("*.md")):
        page_of = f"benchmarks/{path.relative_to(MEASURED).as_posix()}"
        files.append(File.generated(config, page_of, abs_src_path=str(path), inclusion=APART))
    files.append(File.generated(config, "reference/benchmarks.md", content=benchmarks()))
    files.append(File.generated(config, "reproductions/index.md", content=reproductions()))
    pages = [f.src_uri for f in files.documentation_pages() if f.inclusion.is_in_nav()]
    config.nav = navigation(pages)
    return files


def navigation(pages: Sequence[str]) -> list[Any]:
    """All pages by folder: first those that the home page names, in the order in which it does."""
    home = (DOCS / "index.md").read_text(encoding="utf-8")
    folders = ("index.md", "tutorial.md", "how-to", "explanations", "reproductions", "reference")
    named = {p: home.find(f"]({p}") for p in pages}
    places = {p: (folders.index(p.partition("/")[0]), named[p] < 0, named[p], p) for p in pages}
    return _nested([p.split("/") for p in sorted(pages, key=places.__getitem__)])


def _nested(paths: Sequence[Sequence[str]], above: str = "") -> list[Any]:
    """Pages of one folder, and folders below it under their names."""
    found: dict[str, list[Any]] = {}
    for first, *rest in paths:
        found.setdefault(first, []).append(rest)
    return [
        {name.capitalize().replace("-", " "): _nested(below, f"{above}{name}/")}
        if below != [[]]
        else f"{above}{name}"
        for name, below in found.items()
    ]
