"""`bertology claims`: the claims of the literature that studies can test."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from bertology.cli.command import PlainGroup, command
from bertology.cli.console import examples, say, show_table
from bertology.cli.typer_options import argument
from bertology.parameters import parameter


@dataclass(frozen=True, kw_only=True)
class ClaimsOptions:
    """The options of `claims`."""

    search: str = parameter("", "Only claims with all these words in id, text, source or study.")
    paper: str = parameter("", "Only claims of this paper: dark-secrets, or words of its title.")
    study: str = parameter("", "Only claims that this study tests.")


@dataclass(frozen=True, kw_only=True)
class ShowClaimOptions:
    """The argument of `claims show`."""

    claim_id: str = argument("The claim.", metavar="ID")


def add_to(app: typer.Typer) -> None:
    """Put `claims` into the app."""
    group = typer.Typer(
        cls=PlainGroup,
        invoke_without_command=True,
        epilog=examples(
            "bertology claims",
            'bertology claims --search "heads improve"',
            "bertology claims --paper dark-secrets --study head-ablation",
            "bertology claims show dark-secrets.disabling-some-heads-hurts",
        ),
    )
    group.callback()(list_claims.function())
    show_claim.add_to(group)
    app.add_typer(group, name="claims")


@command("claims", [ClaimsOptions])
def list_claims(options: ClaimsOptions) -> None:
    """List or search the claims of the literature, and the study that tests each."""
    from bertology.results.known_claims import find_claims
    from bertology.results.verdicts import statement_text

    search = options.search
    found = find_claims(search, paper=options.paper, study=options.study)
    if not found:
        say(f"No claim has all of {search!r}. See them all with: bertology claims")
        return
    show_table(
        ("claim", "study", "statement", "source"),
        (
            (c.id, c.study, statement_text(c), f"{c.source.paper} ({c.source.section})")
            for c in found
        ),
    )
    ours = sum(c.ours for c in found)
    apart = f", {ours} of them ours (the paper does not say them)" if ours else ""
    say(f"{len(found)} claims{apart}. More about one of them: bertology claims show ID")


@command(
    "show",
    [ShowClaimOptions],
    examples=["bertology claims show dark-secrets.disabling-some-heads-hurts"],
)
def show_claim(options: ShowClaimOptions) -> None:
    """Show one claim: its source, the published numbers, the rule that judges it, and why."""
    from bertology.errors import UnknownNameError
    from bertology.results.known_claims import claims_by_id
    from bertology.results.verdicts import OURS

    claims, claim_id = claims_by_id(), options.claim_id
    if claim_id not in claims:
        raise UnknownNameError(
            "claim", claim_id, claims, hint="Search with: bertology claims --search WORDS"
        )
    claim = claims[claim_id]
    say(claim.id, style="bold")
    if claim.aliases:
        say(f"Was called: {', '.join(claim.aliases)}")
    say(" ".join(claim.statement.split()))
    say()
    say(f"Source:     {claim.source}")
    if claim.source.quote:
        say(f"Quote:      “{claim.source.quote}”")
    say(f"Published:  {' '.join(claim.published.text.split())}")
    for name, value in claim.published.values.items():
        say(f"            {name}: {value:g}")
    say(f"Judged by:  {claim.rule}")
    if claim.tasks is not None:
        say(f"Tasks:      {claim.tasks}")
    if claim.ours:
        say(f"Ours:       {OURS}")
    say(f"Study:      {claim.study}")
    say()
    say(" ".join(claim.explanation.split()))
    say()
    say(f"Test it:    bertology verify MODEL --claims {claim.id}")
