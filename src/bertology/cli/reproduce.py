"""`bertology reproduce PAPER`: all experiments of a paper, and one page with the outcome."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.cli.command import command
from bertology.cli.console import say, say_next, warn
from bertology.cli.plans import (
    PlanOptions,
    StepLog,
    check_folder,
    model_at_hand,
    reproduction_options,
    show_missing,
    show_plan,
)
from bertology.cli.typer_options import argument
from bertology.drafts import write_whole
from bertology.errors import JobError, ParameterError
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    from bertology.reproduce.paper import Paper
    from bertology.reproduce.report import ReproductionReport

_ALL, _IN_LANGUAGES = "all", "-languages"


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(PlanOptions):
    """The options of `reproduce`."""

    paper: str = argument("A paper: dark-secrets, nuggets, primer, or one that a plugin brings.")
    languages: tuple[str, ...] = parameter(
        (),
        "Repeat the studies of heads over parallel texts in these languages, such as de,ja, or in "
        "all that the paper's plan names (all).",
    )
    to: str | None = parameter(
        None,
        "The folder for the page, models and results. If not given: reproductions/PAPER-MODEL, "
        "or PAPER-MODEL-quick.",
        metavar="FOLDER",
    )
    quick: bool = flag(
        "Less data: about a quarter of the examples of the small plan, so that a page is there in "
        "minutes. Intervals are wider, and fewer claims are decided."
    )


@command(
    "reproduce",
    [ReproduceOptions],
    examples=[
        "bertology reproduce dark-secrets",
        "bertology reproduce primer",
        "bertology reproduce primer --quick",
        "bertology reproduce dark-secrets --dry-run",
        "bertology reproduce dark-secrets --tasks mrpc,rte,sts-b --root data --to my-page",
        "bertology reproduce dark-secrets --model user/model-on-the-hub --limit 500",
        "bertology reproduce dark-secrets --languages de,en,fi,ja,ko,ru --root data",
    ],
    needs_input=True,
)
def reproduce(options: ReproduceOptions) -> None:
    """Repeat all experiments of a paper, and get one page with its figures and verdicts.

    Fine-tunes the models, runs every study, judges every claim and writes a page (HTML) and a
    summary (Markdown, JSON). Without options it takes the bundled model, and tasks that the
    bundled grammar makes; it then needs no files and no network. Data that are not on this
    machine are left out, and the page names them.

    Finished steps are stored. If the command is stopped, the same command continues.
    """
    from bertology.model.shape import Shape
    from bertology.reproduce.execute import PlanExecutor
    from bertology.reproduce.planner import plan_paper
    from bertology.reproduce.report import ReproductionReport, short_name

    paper = _paper_for(options)
    named = () if options.languages == (_ALL,) else options.languages
    asked = replace(reproduction_options(options), quick=options.quick, languages=named)
    name = f"{paper.name}-{short_name(asked.model)}{'-quick' if asked.quick else ''}"
    to = Path(options.to or Path("reproductions") / name)
    session = options.session(options.store or str(to / "results"))
    about = model_at_hand(options, session, asked.model, "base").about()
    plan = plan_paper(paper, asked, Shape(**about["shape"]))
    show_missing(plan)
    if options.dry_run:
        show_plan(plan, asked.model, title=f"{paper.title}: the plan")
        return
    check_folder(to)
    say(f"{paper.title}: {len(plan.steps)} steps", style="bold")
    executor = PlanExecutor(
        asked.model,
        to,
        session,
        load=lambda where, head: model_at_hand(options, session, where, head),
        log=StepLog(plan).log,
    )
    report = ReproductionReport(
        paper=paper,
        options=asked,
        plan=plan,
        done=executor.execute(plan),
        model={
            "name": about["name"],
            "fingerprint": about["fingerprint"],
            "family": about["family"],
            "shape": about["shape"],
        },
        store=session.store.url,
    )
    _present(report, to)
    if report.done.failed:
        failed = ", ".join(report.done.failed)
        raise JobError(f"Failed: {failed}.", hint="The same command runs them again.")


def _paper_for(options: ReproduceOptions) -> Paper:
    """The paper; where languages are asked for, the one that is about them."""
    from bertology.reproduce import PAPERS

    paper = PAPERS.get(options.paper)
    if not options.languages or paper.plan.in_languages:
        return paper
    others = [name for name in PAPERS.names() if name.endswith(_IN_LANGUAGES)]
    if (other := f"{paper.name}{_IN_LANGUAGES}") not in others:
        known = ", ".join(name.removesuffix(_IN_LANGUAGES) for name in others)
        must = f"be left out: of papers, these are repeated over languages: {known}"
        raise ParameterError("languages", paper.name, must, options.languages)
    return PAPERS.get(other)


def _present(report: ReproductionReport, to: Path) -> None:
    from bertology.reproduce.judged import counts_text
    from bertology.reproduce.render.page import reproduction_page
    from bertology.reproduce.render.summary import as_json, as_markdown

    say("Drawing the page …")
    before = _command_before(to)
    texts = {
        "index.html": reproduction_page(report),
        "summary.json": as_json(report),
        "summary.md": as_markdown(report),
    }
    for name, text in texts.items():
        write_whole(to / name, text)
    say(f"{len(report.judged)} claims: {counts_text(report.judged)}", style="bold")
    if report.page_text:
        say(report.page_text)
    for step, _ in report.not_run():
        warn(f"{step.key} was not run; the page says why.")
    if before not in (None, report.command):
        say(f"This replaced the page of another command. To make that page again: {before}")
    say(f"Page:    {to / 'index.html'}")
    say(f"Summary: {to / 'summary.md'}, {to / 'summary.json'}")
    say_next(f"bertology list --store {shlex.quote(report.store)}")


def _command_before(to: Path) -> str | None:
    """The command that made the page in this folder, if there is a page."""
    try:
        return str(json.loads((to / "summary.json").read_text(encoding="utf-8"))["command"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None
