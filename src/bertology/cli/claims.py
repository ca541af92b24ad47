"""`bertology claims`: what the literature states."""

from __future__ import annotations

from typing import Annotated

import typer

from bertology.cli.console import examples, say, show_table

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Put `claims` into the app."""
    group = typer.Typer(
        invoke_without_command=True,
        epilog=examples(
            "bertology claims",
            'bertology claims --search "heads improve"',
            "bertology claims --paper dark-secrets --study head-ablation",
            "bertology claims show dark-secrets.some-heads-hurt",
        ),
    )
    group.callback()(list_claims)
    group.command("show", epilog=examples("bertology claims show dark-secrets.some-heads-hurt"))(
        show_claim
    )
    app.add_typer(group, name="claims")


def list_claims(
    ctx: typer.Context,
    search: Annotated[
        str, typer.Option(help="Only claims with all these words in id, text, source or study.")
    ] = "",
    paper: Annotated[
        str, typer.Option(help="Only claims of this paper: dark-secrets, or words of the source.")
    ] = "",
    study: Annotated[str, typer.Option(help="Only claims that this study tests.")] = "",
) -> None:
    """List or search what the literature claims, and the study that tests it."""
    if ctx.invoked_subcommand is not None:
        return
    from bertology.results.claims import find_claims

    found = find_claims(search, paper=paper, study=study)
    if not found:
        say(f"No claim has all of {search!r}. See them all with: bertology claims")
        return
    show_table(
        ("claim", "study", "statement", "source"),
        (
            (c.id, c.study, " ".join(c.statement.split()), f"{c.source.paper} ({c.source.section})")
            for c in found
        ),
    )
    say(f"{len(found)} claims. More about one: bertology claims show ID")


def show_claim(claim_id: Annotated[str, typer.Argument(metavar="ID", help="The claim.")]) -> None:
    """Show one claim: source, what was published, how it is judged, and what that means."""
    from bertology.errors import UnknownNameError
    from bertology.results.claims import load_claims

    claims = {c.id: c for c in load_claims()}
    if claim_id not in claims:
        raise UnknownNameError(
            "claim", claim_id, claims, hint="Search with: bertology claims --search WORDS"
        )
    claim = claims[claim_id]
    say(claim.id, style="bold")
    say(" ".join(claim.statement.split()))
    say()
    say(f"Source:     {claim.source}")
    if claim.source.quote:
        say(f"Quote:      “{claim.source.quote}”")
    say(f"Published:  {' '.join(claim.published.text.split())}")
    for name, value in claim.published.values.items():
        say(f"            {name}: {value:g}")
    say(f"Judged by:  {claim.rule}")
    say(f"Study:      {claim.study}")
    say()
    say(" ".join(claim.explanation.split()))
    say()
    say(f"Test it:    bertology verify MODEL --claims {claim.id}")
