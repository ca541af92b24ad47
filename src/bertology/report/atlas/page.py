"""The atlas of a model: one page, drawn from stored results alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files

import numpy as np

from bertology.report.atlas.about import Describe
from bertology.report.atlas.chapters import chapters, table_data, table_key
from bertology.report.atlas.claims import Judged, claims_piece, in_short, judged_on, tally
from bertology.report.atlas.compare import Side, compare_data, compare_piece, shared_measures
from bertology.report.atlas.gathering import Subject
from bertology.report.atlas.grid import MeasureRecord, head_measures
from bertology.report.atlas.maps import example_maps, layer_pairs, layer_pairs_piece, mean_maps
from bertology.report.atlas.naming import counted, in_words, portable_name, short_name
from bertology.report.atlas.profiles import profiles_piece
from bertology.report.atlas.side_by_side import LeftOut, lacking_piece, numbers_piece, side_by_side
from bertology.report.figures import TYPE_COLOURS
from bertology.report.look import diverging, night, sequential
from bertology.report.web import Html, anchor, element, facts, folded, items, joined, page, table
from bertology.results.provenance import library_versions

_SCRIPTS = (
    "start.js", "colours.js", "grid.js", "maps.js", "panel.js", "downloads.js", "picture.js",
    "claims.js", "compare.js", "pairs.js", "planes.js", "run.js",
)  # fmt: skip
_STYLES = ("atlas.css", "points.css")
_STOPS = 33  # of a colour map; the page mixes between them
# The page never loads anything from another address, whatever the texts of a result contain.
_POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)


def atlas_page(
    subject: Subject,
    describe: Describe,
    compared: tuple[Side, Side] | None = None,
    *,
    drawn: Callable[[int], None] = lambda n: None,
    left_out: Sequence[LeftOut] = (),
    across_claims: bool = False,
) -> str:
    """One HTML file that needs nothing but itself; `compared` puts two models side by side.

    `drawn` is called for each result that is ready. `left_out` says what could not be measured.
    `across_claims`: the error of verdicts is held over all claims of a model.
    """
    entries, shape = subject.entries, subject.grid
    judged = judged_on(entries, across_claims=across_claims)
    measures = head_measures(entries, shape)
    data: dict[str, object] = {
        "model": subject.name,
        "layers": shape[0],
        "heads": shape[1],
        "measures": measures,
        "means": mean_maps(entries, shape),
        "examples": example_maps(entries, shape),
        "tables": {
            table_key(e, n): table_data(t) for e in entries for n, t in e.result.tables.items()
        },
        "claims": {
            entry.anchor: [
                [j.claim.id, j.claim.statement, v.outcome.value]
                for j in judged
                for of, v in j.verdicts
                if of is entry
            ]
            for entry in entries
        },
        "colours": _colours(),
    }
    beside, title = Html(""), subject.name
    if compared is not None:
        pairs, layers = shared_measures(*compared), layer_pairs(*compared)
        of_layers = layer_pairs_piece(*compared) if layers else Html("")
        found = side_by_side(*compared, left_out)
        told = numbers_piece(found), lacking_piece(found)
        beside = compare_piece(*compared, pairs, of_layers, *told, across_claims=across_claims)
        names = [side.name for side in compared]
        data |= {"pairs": compare_data(pairs), "layerPairs": layers, "sides": names}
        title = " and ".join(names)
    pieces = [
        _header(subject, judged, compared=compared is not None),
        in_short(entries, judged),
        beside,
        _heads(subject, measures),
        profiles_piece(entries, shape[0]),
        claims_piece(
            judged,
            portable_name(str(subject.model.get("name") or subject.name)),
            across_claims=across_claims,
        ),
        chapters(entries, describe, shape, drawn),
        _made(subject),
        Html(f'<script type="application/json" id="data">{_json(data)}</script>'),
        Html(f"<script>\n{_script()}\n</script>"),
    ]
    style = "\n".join(map(_static, _STYLES))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    return page(f"{title}: the atlas", joined(pieces), style=style, head=policy)


def _json(data: object) -> str:
    """For a script element, which `</script>` within a text would end."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _static(name: str) -> str:
    return (files("bertology.report.atlas") / "static" / name).read_text(encoding="utf-8").strip()


def _script() -> str:
    # One function around all scripts: they share their names, and other scripts do not see them.
    inside = "\n".join([_module("points.js", "Plane"), *map(_static, _SCRIPTS)])
    return f'(() => {{\n"use strict";\n{inside}\n}})();'


def _module(name: str, gives: str) -> str:
    """A module of the explorer too, which imports nothing: its other names stay its own."""
    text = _static(name).replace(f"export class {gives}", f"class {gives}")
    return f"const {gives} = (() => {{\n{text}\nreturn {gives};\n}})();"


def _colours() -> dict[str, object]:
    at = np.linspace(0, 1, _STOPS)
    ramps = {"sequential": sequential(), "diverging": diverging(), "night": night()}
    found: dict[str, object] = {
        name: [[round(255 * float(c)) for c in ramp(float(x))[:3]] for x in at]
        for name, ramp in ramps.items()
    }
    return found | {"kinds": [*TYPE_COLOURS, "#d55e00", "#cc79a7", "#f0e442", "#6b6b6b"]}


# The model at a glance --------------------------------------------------------------------------


def _header(subject: Subject, judged: Sequence[Judged], *, compared: bool) -> Html:
    model, shape = subject.model, subject.model.get("shape") or {}
    built = ", ".join(f"{value} {in_words(name)}" for name, value in shape.items() if value)
    studies = len({e.study for e in subject.entries})
    told: list[tuple[str, object]] = [
        ("Shape", built or "not recorded"),
        ("Family", model.get("family") or "not recorded"),
        ("Parameters", _parameters(model)),
        ("Tasks", ", ".join(subject.tasks) or "none: no model fine-tuned from it has results here"),
        ("Data", ", ".join(sorted({e.data for e in subject.entries if e.data}))),
        (
            "Results",
            f"{len(subject.entries)}, by {studies} {'study' if studies == 1 else 'studies'}",
        ),
        ("Claims", tally(judged)),
        ("Fingerprint", element("code", str(model.get("fingerprint")))),
    ]
    origin = model.get("tuned_from")
    if origin:
        told.insert(
            1, ("Fine-tuned from", f"{short_name(str(origin['name']))}, on {origin['task']}")
        )
    links = [("#heads", "Heads"), ("#layers", "Layers"), ("#claims", "Claims")]
    links += [("#studies", "Studies"), ("#made", "How this was made")]
    if compared:
        links.insert(0, ("#compare", "Comparison"))
    return element(
        "header",
        element("p", "Atlas of", kind="over"),
        element("h1", subject.name),
        element("p", built, kind="soft") if built else "",
        element("nav", items(anchor(*link) for link in links), aria_label="On this page"),
        folded("About the model and these results", facts(told)),
    )


def _parameters(model: Mapping[str, object]) -> str:
    """How many; results of the bare model do not count the head that its file may have."""
    count = model.get("parameters")
    if not isinstance(count, int):
        return "not recorded by these results"
    return f"{count:,} without its head" if model.get("head") == "base" else f"{count:,}"


def _heads(subject: Subject, measures: Sequence[MeasureRecord]) -> Html:
    layers, heads = subject.grid
    pieces: list[object] = [element("h2", "Heads")]
    if not measures:
        pieces.append(element("p", "No result here is about single heads."))
        return element("section", joined(pieces), id="heads")
    words = (
        f"{layers} layers of {heads} heads, numbered from 0. Choose what the colours mean; point "
        "at a head for its number, click it (or press Enter) for all that is known of it. Arrow "
        "keys walk the grid."
    )
    pieces += [
        element("p", words, kind="soft"),
        element("noscript", element("p", "The grid needs JavaScript; what is below does not.")),
        element("div", id="choose", kind="choose"),
        element(
            "div",
            element(
                "div", element("div", id="grid"), element("div", id="legend"),
                element("div", id="readout"), kind="map",
            ),
            element("div", id="panel", aria_live="off"),
            kind="split",
        ),
    ]  # fmt: skip
    return element("section", joined(pieces), id="heads")


def _made(subject: Subject) -> Html:
    versions = ", ".join(f"{name} {v}" for name, v in library_versions().items())
    rows = [
        (
            in_words(e.study),
            anchor(f"#{e.anchor}", e.label),
            element("code", e.result.identity),
            e.result.provenance.created[:10],
            ", ".join(
                f"{n} {v}"
                for n, v in e.result.provenance.versions.items()
                if n in ("bertology", "torch", "transformers")
            ),
        )
        for e in subject.entries
    ]
    pieces: list[object] = [
        element("h2", "How this was made"),
        facts(
            [
                ("Command", element("code", f"bertology report {subject.name}")),
                ("Date", datetime.now(UTC).date().isoformat()),
                ("Drawn with", versions),
            ]
        ),
    ]
    if subject.left_out:
        pieces.append(
            element(
                "p",
                f"Left out: {counted(subject.left_out, 'result')} of other weights that the store "
                "has under the same name.",
                kind="soft",
            )
        )
    columns = ("study", "of", "identity in the store", "measured", "with")
    pieces.append(folded(f"All {counted(len(rows), 'result')}", table(columns, rows)))
    pieces.append(
        element(
            "p",
            "Tables that the buttons save have five digits; all digits, and figures as PDF, come "
            "from bertology report with --export.",
            kind="soft",
        )
    )
    return element("section", joined(pieces), id="made")
