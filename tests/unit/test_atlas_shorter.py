"""The atlas begins with what is most worth knowing, says it once, and its links lead there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import toy_atlas as toy
from bertology.report import drawings
from bertology.report.atlas.about import About
from bertology.report.atlas.claims import first_entries, in_short
from bertology.report.atlas.gathering import gather
from bertology.report.atlas.page import atlas_page
from bertology.report.web import image
from bertology.results.drawing import Drawing
from bertology.results.drawing_code import drawn_by
from bertology.results.rendering import render
from bertology.results.store import Store
from bertology.run.progress import ProgressLines
from browser import Browser, find_browser


def about(study: str) -> About:
    return About()


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


# The first lines


def test_the_page_begins_with_a_sentence_of_each_study_and_one_on_claims(
    toy_store: Store,
) -> None:
    page = atlas_page(gather(toy_store, "toy"), about)
    short = page[page.index('id="short"') : page.index('id="heads"')]
    lines = [plain(line) for line in re.findall(r"<li>(.*?)</li>", short, flags=re.S)]
    assert len(lines) == 2  # one study, and its claims
    assert lines[0].startswith("Surely: gain without the head is largest in head 1.2, 0.2 [")
    assert "toy study, plain" in lines[0]  # the model's own, not that of a fine-tuned one
    assert lines[1].startswith("Of 2 claims of the literature that were tested here, 1 fails")


def test_the_models_own_and_the_largest_result_of_a_study_is_told(toy_store: Store) -> None:
    entries = gather(toy_store, "toy").entries
    (first,) = first_entries(entries)
    assert not first.task
    (of_a_task,) = first_entries([e for e in entries if e.task])
    assert of_a_task.task
    assert in_short([], []) == ""


# Nothing twice


def test_what_the_grid_of_heads_shows_is_not_drawn_again(
    toy_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def same(self: toy.Toy) -> list[Drawing]:
        gain, _, layers = self.measures()
        return [
            drawings.grid(gain, "toy", name="first"),
            drawings.grid(gain, "toy", name="second"),
            drawings.bars(layers, "toy", name="third"),
            *toy_drawings(self)[:1],
        ]

    toy_drawings = toy.Toy.drawings
    monkeypatch.setattr(toy.Toy, "drawings", same)
    page = atlas_page(gather(toy_store, "toy"), about)
    studies = page[page.index('id="studies"') :]
    entries = studies.split("<details")[1:]
    titles = [re.findall(r"<figcaption><b>(\w+)\.", entry) for entry in entries]
    titles = [found for found in titles if found]
    # The main figure of the first result stays; of the others only what is nowhere else.
    assert titles == [["First", "Heads"], ["Heads"], ["Heads"], ["Heads"]]
    assert "In the grid of heads: " in plain(studies)
    assert "#measure=toy-study/gain&amp;of=r-" in studies
    assert '<a href="#layers-toy-study">charts</a>' in studies
    assert 'id="layers-toy-study"' in page


# Links


def test_pictures_have_a_size_before_they_are_read() -> None:
    found = image('<svg width="10pt" viewBox="0 0 432.5 288">x</svg>', alt="a")
    assert 'width="432" height="288"' in found
    assert "width" not in image("<svg>x</svg>", alt="a")


def test_a_link_lands_exactly_where_it_leads(toy_store: Store, tmp_path: Path) -> None:
    """What was far down had no size until it was seen, so that links ended somewhere else."""
    find_browser()
    path = tmp_path / "page.html"
    path.write_text(atlas_page(gather(toy_store, "toy"), about), encoding="utf-8")
    with Browser(width=1000, height=500) as browser:
        browser.open(path.as_uri())
        browser.wait_for("document.querySelectorAll('#grid td').length === 6")
        last = browser.evaluate("[...document.querySelectorAll('details.entry')].at(-2).id")
        for name in ("layers", "claims", "studies", "claim-toy.gains", str(last), "made"):
            browser.evaluate(f"location.hash = '#{name}'")
            browser.wait_for(
                f"(b => b.top > -1 && b.top < 20 || "
                f"scrollY + innerHeight >= document.documentElement.scrollHeight - 1)"
                f"(document.getElementById('{name}').getBoundingClientRect())"
            )
        assert browser.complaints == []


def test_a_heads_panel_names_the_tokens_of_its_map(toy_store: Store, tmp_path: Path) -> None:
    find_browser()
    path = tmp_path / "page.html"
    path.write_text(atlas_page(gather(toy_store, "toy"), about), encoding="utf-8")
    with Browser(width=1280) as browser:
        pictures = []
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.open("about:blank")
            browser.open(f"{path.as_uri()}#head=0.1")
            browser.wait_for("document.querySelector('#panel .worded')")
            for side in ("rows", "columns"):
                spans = f"document.querySelector('#panel .worded .{side}').children"
                assert browser.evaluate(f"[...{spans}].map(s => s.textContent)") == [
                    "a",
                    "<b>",
                    "c",
                ]
            corner = "document.querySelector('#panel .worded canvas').getContext('2d')"
            pictures.append(browser.evaluate(f"[...{corner}.getImageData(2, 0, 1, 1).data]"))
        # Nothing is as the page is: light on a light one, dark on a dark one.
        assert min(pictures[0][:3]) > 200
        assert max(pictures[1][:3]) < 60
        assert browser.complaints == []


# Figures that are stored


@pytest.mark.usefixtures("drawn")
def test_a_stored_figure_is_shown_again_and_drawn_anew_when_the_code_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    result = toy.make(toy.MODEL)

    def one(self: toy.Toy) -> list[Drawing]:
        return [drawings.grid(self.measures()[0], "toy", name="heads")]

    def noted(figure: Figure) -> bytes:
        drawn.append("heads")
        return render(figure)

    monkeypatch.setattr(toy.Toy, "drawings", one)
    monkeypatch.setattr("bertology.results.result._find", lambda study: toy.Toy)
    monkeypatch.setattr("bertology.results.result.render", noted)
    store = Store(str(tmp_path))
    store.save(result)
    assert len(drawn) == 1
    stored = (Path(tmp_path) / result.provenance.key / "figures" / "heads.svg").read_bytes()
    assert store.load(result.provenance).svg("heads") == stored
    assert len(drawn) == 1  # read back
    monkeypatch.setattr("bertology.results.store.drawn_by", lambda kind: "other code")
    assert store.load(result.provenance).svg("heads") == stored
    assert len(drawn) == 2  # and drawn anew
    assert re.fullmatch(r"[0-9a-f]{16}", drawn_by(toy.Toy))


# Progress


def test_long_work_is_told_in_lines_where_there_is_no_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("bertology.run.progress.time.monotonic", lambda: now[0])
    lines = ProgressLines(every=10)
    lines.start("drawing", 80)
    for _ in range(80):
        now[0] += 0.5
        lines.advance(1)
    lines.stop()
    # Much quick work in a row is told of too, and long work in minutes and hours.
    for number in range(9):
        lines.start(f"page {number}", 1)
        now[0] += 2
        lines.advance(1)
        lines.stop()
    lines.start("training", 2_000)
    now[0] += 600
    lines.advance(100)
    heard = capsys.readouterr()
    assert heard.err.splitlines() == [
        "drawing: 20 of 80 after 10 s, about 30 s left",
        "drawing: 40 of 80 after 20 s, about 20 s left",
        "drawing: 60 of 80 after 30 s, about 10 s left",
        "drawing: 80 of 80 after 40 s",
        "page 4: 1 of 1 after 2 s",
        "training: 100 of 2,000 after 10 min, about 3 h 10 min left",
    ]
    assert heard.out == ""
