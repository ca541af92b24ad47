"""`bertology verify MODEL`: claims of the literature, judged on a model, in one table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bertology.cli.command import command, command_line
from bertology.cli.console import check_file, say, say_next, show_table, warn, write_file
from bertology.cli.option_groups import MODEL_HELP
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
from bertology.errors import BertologyError, ParameterError
from bertology.parameters import parameter

if TYPE_CHECKING:
    from bertology.reproduce.judged import JudgedClaim
    from bertology.reproduce.plan import ReproductionOptions
    from bertology.reproduce.verify import FineTunedModel, Verification, VerificationPart
    from bertology.run.session import Session


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(PlanOptions):
    """The options of `verify`."""

    model: str = argument(MODEL_HELP)
    tasks: tuple[str, ...] = parameter(
        (), "Tasks, such as mrpc,rte. If not given: tasks that the bundled grammar makes, or the "
        "task that the model was fine-tuned on.",
    )  # fmt: skip
    to: str | None = parameter(
        None,
        "The folder for fine-tuned models and results. If not given: models and results here.",
        metavar="FOLDER",
    )
    claims: tuple[str, ...] = parameter(
        (),
        "Judge only these claims: ids or parts of ids, as disabling-some-heads,frame.",
    )
    json: str | None = parameter(None, "Also write the verdicts to this JSON file.", metavar="FILE")
    csv: str | None = parameter(None, "Also write the verdicts to this CSV file.", metavar="FILE")


@command(
    "verify",
    [VerifyOptions],
    examples=[
        "bertology verify bertology-mini",
        "bertology verify bertology-mini --claims frame,disabling-some-heads-hurts",
        "bertology verify bertology-mini --across-claims",
        "bertology verify bertology-mini --dry-run",
        "bertology verify user/model-on-the-hub --tasks mrpc,rte --root data --csv table.csv",
    ],
    needs_input=True,
)
def verify(options: VerifyOptions) -> None:
    """Test claims of the literature on a model, and get a table of verdicts.

    Runs the studies that the claims need and judges each claim. It holds if the whole interval of
    its quantity satisfies the rule, fails if no part of the interval does, and is inconclusive
    otherwise; then the table says how many examples would settle it. Size open: what is claimed is
    surely there, but perhaps smaller than what matters. Negligible: it is surely smaller. The last
    lines say how many claims would hold by chance if none were true. Without options, all claims
    about a given model are judged, on tasks that the bundled grammar makes; nothing else is needed.

    A classifier that bertology fine-tuned is judged on its own task and is not fine-tuned again.
    Claims about the model before fine-tuning are judged on the model that it was made from.

    Finished steps are stored. If the command is stopped, the same command continues. Exit code 0:
    every claim was judged. 1: some claims could not be judged, or a step failed; the output says
    why. 2: wrong input.
    """
    found = _verify(options)
    if found is not None and (found.open or found.failed):
        raise typer.Exit(1)


def _verify(options: VerifyOptions) -> Verification | None:
    """The verification that was carried out; None after a dry run."""
    from bertology.model.shape import Shape
    from bertology.reproduce.verify import Verification, choose_claims, plan_parts

    chosen = choose_claims(options.claims)
    # Refuse a file that cannot be written, before hours of work and not after
    for name in ("json", "csv"):
        check_file(getattr(options, name), f"--{name}")
    to = Path(options.to or ".")
    session = options.session(options.store or str(to / "results"))
    asked, fine_tuned, about = _begin(options, session)
    parts = plan_parts(chosen.claims, asked, Shape(**about["shape"]))
    say(f"{options.model}: {_claims(len(chosen.claims))}", style="bold")
    if fine_tuned is not None:
        say(
            f"It was fine-tuned on {fine_tuned.task} from {fine_tuned.base}, and is not fine-tuned "
            f"again. Claims about the model before fine-tuning are judged on {fine_tuned.base}."
        )
    reasons: dict[str, list[str]] = {}
    for claim, why in chosen.left_out:
        reasons.setdefault(f"{claim.study}: {why}", []).append(claim.id)
    for why, ids in reasons.items():
        say(f"Left out: {_claims(len(ids))} of {why} (--claims {ids[0]}).")
    for part in parts:
        show_missing(part.plan)
    if options.dry_run:
        for part in parts:
            for study, why in part.without_steps.items():
                warn(f"No step for claims of {study}: {why}.")
            show_plan(part.plan, asked.model, title=f"{part.title}: what the claims need")
        return None
    check_folder(to)
    found = Verification(chosen, parts, across_claims=options.across_claims)
    store = _carry_out(found, options, asked, fine_tuned, session)
    _show_verdicts(found, options.model)
    _write(found, options, _told(options.model, about, fine_tuned))
    say_next(*_next(found, shlex.quote(options.model), f"--store {shlex.quote(store)}"))
    return found


def _next(found: Verification, model: str, store: str) -> Iterator[str]:
    """Commands that tell more, of the first claim that was judged."""
    first = next((judged for judged in found.judged if judged.verdicts), None)
    if first is not None:
        yield f"bertology claims show {first.claim.id}"
        result = found.result_of(first.claim, first.verdicts[0][0])
        yield f"bertology show {result.identity[:8]} {store}"
        yield f"bertology report {model} {store}"


def _begin(
    options: VerifyOptions, session: Session
) -> tuple[ReproductionOptions, FineTunedModel | None, dict[str, Any]]:
    """The options of the plan, and what is known of the model before fine-tuning."""
    from bertology.reproduce.verify import find_fine_tuned

    asked, fine_tuned = reproduction_options(options), find_fine_tuned(options.model)
    if fine_tuned is not None:
        base = _base_of(fine_tuned, options, session)
        if base is not None:
            if any(Path(task).name != Path(fine_tuned.task).name for task in asked.tasks):
                must = f"be {fine_tuned.task}, the task that the model was fine-tuned on"
                raise ParameterError("tasks", options.model, must, list(asked.tasks))
            return replace(asked, model=fine_tuned.base, tasks=(fine_tuned.task,)), fine_tuned, base
    return asked, None, model_at_hand(options, session, asked.model, "base").about()


def _base_of(
    fine_tuned: FineTunedModel, options: VerifyOptions, session: Session
) -> dict[str, Any] | None:
    """What is known of the model before fine-tuning, if it is still what it was."""
    try:
        base = model_at_hand(options, session, fine_tuned.base, "base").about()
    except BertologyError as error:
        why = error.problem
    else:
        if base["fingerprint"] == fine_tuned.fingerprint:
            return base
        why = f"{fine_tuned.base} has changed since then."
    warn(f"{options.model} is fine-tuned, but the model before fine-tuning is not here: {why}")
    return None


def _carry_out(
    found: Verification,
    options: VerifyOptions,
    asked: ReproductionOptions,
    fine_tuned: FineTunedModel | None,
    session: Session,
) -> str:
    """Run the steps of all parts; returns the URL of the store."""
    from bertology.reproduce.execute import PlanExecutor

    to = Path(options.to or ".")
    for part in found.parts:
        say(f"{part.title}: {_counted(part)}")
        executor = PlanExecutor(
            asked.model,
            to,
            session,
            load=lambda where, head: model_at_hand(options, session, where, head),
            log=StepLog(part.plan).log,
            fine_tuned=part.given(fine_tuned),
        )
        found.done.append(executor.execute(part.plan))
    return session.store.url


def _counted(part: VerificationPart) -> str:
    steps = len(part.plan.steps)
    return f"{steps} step{'' if steps == 1 else 's'} for {_claims(len(part.claims))}"


def _claims(n: int) -> str:
    return f"{n} claim{'' if n == 1 else 's'}"


# Output -----------------------------------------------------------------------------------------


def _show_verdicts(found: Verification, model: str) -> None:
    rows: list[tuple[str, ...] | None] = []
    for judged in found.judged:
        rows += [*_rows(found, judged, model), None]
    longest = max(len(judged.claim.id) for judged in found.judged)
    columns = ("claim", "published", "here", "verdict", "result")
    widths = {"claim": longest, "verdict": 14, "result": 8}
    from bertology.reproduce.judged import counts_text
    from bertology.results.rules import TERMINAL_STYLES

    show_table(columns, rows[:-1], styles=TERMINAL_STYLES, widths=widths)
    say(f"{_claims(len(found.judged))}: {counts_text(found.judged)}", style="bold")
    if found.page_text:
        say(found.page_text)
    reasons: dict[str, list[str]] = {}
    for judged in found.open:
        reasons.setdefault(found.why_open(judged), []).append(judged.claim.id)
    for why, ids in reasons.items():
        warn(f"Could not be judged: {', '.join(ids)} ({why}).")
    for key, why in found.failed.items():
        warn(f"Failed: {key} ({why}). The same command runs it again.")


def _rows(found: Verification, judged: JudgedClaim, model: str) -> Iterator[tuple[str, ...]]:
    """A row for each corpus; the first has the claim."""
    from bertology.reproduce.report import short_name
    from bertology.results.verdicts import found_text, statement_text

    claim = judged.claim
    together = f"\nover all tasks: {judged.overall}" if len(judged.verdicts) > 1 else ""
    about = (
        f"{statement_text(claim)}\n{claim.id}{together}",
        " ".join(claim.published.text.split()),
    )
    for title, verdict in judged.verdicts:
        quantity = claim.rule.quantity.replace("_", " ")
        here = found_text(verdict)
        here = here if verdict.estimate is None else f"{quantity} {here}"
        result = found.result_of(claim, title)
        of = short_name(str(result.provenance.model.get("name")))
        where = title if of == short_name(model) else f"{title} ({of})"
        yield (*about, f"{where}: {here}", verdict.outcome.in_words, result.identity[:8])
        about = ("", "")
    if not judged.verdicts:
        yield (*about, found.why_open(judged), judged.overall, "")


# Files ----------------------------------------------------------------------------------------


def _told(
    model: str, about: dict[str, Any], fine_tuned: FineTunedModel | None
) -> dict[str, object]:
    """The given model; for a fine-tuned classifier also the model before fine-tuning."""
    if fine_tuned is None:
        return about
    return {"name": model, "task": fine_tuned.task, "tuned_from": about}


def _write(found: Verification, options: VerifyOptions, model: dict[str, object]) -> None:
    from bertology.reproduce.render.verdict_files import as_csv, as_json

    texts = {}
    if options.json is not None:
        texts[options.json] = as_json(found, model=model, command=command_line())
    if options.csv is not None:
        texts[options.csv] = as_csv(found)
    for name, text in texts.items():
        write_file(name, text)
