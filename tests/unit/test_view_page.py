"""`bt.view` and `bertology view`: the explorer's page as one file, without a server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bertology as bt
import tiny
from accessibility import find_barriers, need_axe
from bertology.cli.main import app
from bertology.errors import DataError, StoreError
from bertology.server.view_page import AttentionView
from browser import Browser, find_browser
from explorer import PIECES, TEXT, encoder_of
from pages import WIDTHS_AND_SCHEMES, idle, keep, page_state, pick, text, texts

EVIL = "</script><img src=x onerror=alert(1)> <b>keys"
STATIC = Path(bt.__file__).parent / "server" / "static"


def test_the_page_is_whole_and_asks_for_nothing() -> None:
    page = bt.view(encoder_of(), EVIL).html
    assert EVIL not in page
    assert "<img" not in page, "texts are packed, never HTML"
    assert page.count("<script") == page.count("</script>") == 2
    markup = page.partition('<script type="application/json"')[0]
    assert not re.findall(r'(?:src|href)="(?!data:|/annotate)', markup)
    assert "default-src 'none'" in page
    assert len(page) < 250_000


def test_every_module_of_the_page_is_written_as_the_file_needs_it() -> None:
    """Imports and exports in the plain forms that are put into one script."""
    script = bt.view(encoder_of(), TEXT).html.rpartition("<script>")[2]
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    for path in (STATIC / "explore").glob("*.js"):
        assert f"module_{path.stem.replace('-', '_')}" in script or path.stem == "explore", path
    assert "module_embedded" in script
    assert "module_server" not in script


def test_what_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    encoder = encoder_of()
    with pytest.raises(DataError, match="The text is empty"):
        bt.view(encoder, " ")
    with pytest.raises(DataError, match="tokens"):
        bt.view(encoder, "the key " * 60)
    made = bt.view(encoder, TEXT)
    to = tmp_path / "page.html"
    assert made.save(to) == to
    to.write_text("mine")
    with pytest.raises(StoreError, match="is there already"):
        made.save(to)
    assert to.read_text() == "mine"
    made.save(to, force=True)
    assert to.read_text(encoding="utf-8") == made.html
    with pytest.raises(StoreError, match="its folder does not exist"):
        made.save(tmp_path / "none" / "page.html")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_notebook_gets_a_frame_of_its_own() -> None:
    made = bt.view(encoder_of(), EVIL)
    frame = made._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert frame.count("<") == 2, "the whole page is in the attribute"
    assert "a page of" in repr(made)


def test_a_folder_is_not_told_to_others(tmp_path: Path) -> None:
    encoder = encoder_of()
    (tmp_path / "my-model").mkdir()
    encoder.name = str(tmp_path / "my-model")
    assert bt.view(encoder, TEXT).model == "my-model"


def test_the_command(tmp_path: Path) -> None:
    model = tmp_path / "model"
    tiny.model("bert", "mlm").save_pretrained(model)
    tiny.tokenizer(PIECES, max_length=64).save_pretrained(model)
    to = tmp_path / "page.html"
    asked = ["view", TEXT, "it is here .", "--model", str(model), "--to", str(to)]
    done = CliRunner().invoke(app, asked, prog_name="bertology", env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    kilobytes = round(to.stat().st_size / 1000)
    assert f"({kilobytes} kB, 16 tokens)" in done.output
    again = CliRunner().invoke(app, asked, prog_name="bertology")
    assert again.exit_code == 2
    assert "--force" in again.output
    assert CliRunner().invoke(app, [*asked, "--force"], prog_name="bertology").exit_code == 0


def test_no_extra_is_needed() -> None:
    tried = (
        "import sys\n"
        "for name in ('fastapi', 'starlette', 'uvicorn', 'pydantic'): sys.modules[name] = None\n"
        "import bertology.server.view_page"
    )
    subprocess.run([sys.executable, "-c", tried], check=True)


# In the browser ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    find_browser()
    with Browser(width=1280, height=800) as made:
        yield made


def show(browser: Browser, made: AttentionView, folder: Path, condition: str = "true") -> str:
    """The page as a file in the browser."""
    address = made.save(folder / "page.html", force=True).as_uri()
    browser.open("about:blank")
    browser.open(address)
    idle(browser, f"document.querySelector('#grid canvas') && ({condition})")
    return address


def test_the_file_shows_heads_words_and_pairs(browser: Browser, tmp_path: Path) -> None:
    made = bt.view(encoder_of(), (EVIL, "the dog is good ."))
    show(browser, made, tmp_path)
    assert text(browser, "#kept-text") == f"{EVIL}\nthe dog is good ."
    assert not browser.evaluate("document.getElementById('text').checkVisibility()")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert len(texts(browser, "#grid [role=gridcell]")) == 12
    assert "Dashed line" in text(browser, "#legend-boundary")
    pieces = len(texts(browser, "#tokens li"))
    browser.click("input[value=words] + span")
    idle(browser, f"document.querySelectorAll('#tokens li').length < {pieces}")
    browser.click("#grid [role=row]:nth-child(3) > :nth-child(4)")
    idle(browser, "document.getElementById('chosen-title').textContent === 'Layer 1, head 2'")
    browser.click("input[value=lines] + span")
    browser.wait_for("document.querySelector('.lines .left button').checkVisibility()")
    pick(browser, "search", str(texts(browser, "#search option").index("the token before")))
    idle(browser, "document.querySelectorAll('#ranking li').length === 10")
    browser.press("o")  # there is no model to switch anything off in
    found = page_state(browser)
    assert (found["level"], found["off"]["heads"]) == ("words", [])
    assert found["page"]["chosen"] == {"layer": 1, "head": 2}

    link = browser.evaluate("location.href")
    browser.open("about:blank")
    browser.open(link)
    idle(browser, "document.getElementById('chosen-title').textContent === 'Layer 1, head 2'")
    assert browser.evaluate("document.querySelector('input[value=words]').checked")
    assert browser.complaints == []


def test_the_tour_works_without_a_model(browser: Browser, tmp_path: Path) -> None:
    made = bt.view(encoder_of(), "the key ##s to the cabinet [MASK] here .")
    predicted = "document.querySelectorAll('#predictions tbody tr').length === 8"
    show(browser, made, tmp_path, predicted)  # the mask that is written in the text
    browser.click("#start-tour")
    for number in range(1, 7):
        count = f"document.getElementById('tour-count').textContent === 'Step {number} of 6'"
        idle(browser, count)
        browser.click("#tour-next") if number < 6 else None
    assert text(browser, "#tour-title") == "Look for yourself"
    assert len(texts(browser, "#ranking li")) == 10
    browser.click("#tour-next")
    browser.click("#present")
    browser.wait_for("document.documentElement.classList.contains('presenting')")
    assert browser.complaints == []


def test_a_classifier_shows_its_classes(browser: Browser, tmp_path: Path) -> None:
    made = bt.view(encoder_of("classification"), "the dog is good .")
    show(browser, made, tmp_path, "document.querySelector('#predictions .classes')")
    assert len(texts(browser, "#predictions tbody tr")) == 3
    assert browser.complaints == []


def test_the_cell_of_a_notebook(browser: Browser, tmp_path: Path) -> None:
    made = bt.view(encoder_of(), TEXT)
    cell = tmp_path / "notebook.html"
    cell.write_text(f"<!doctype html><title>n</title>{made._repr_html_()}", encoding="utf-8")
    browser.open(cell.as_uri())
    browser.wait_for(
        "document.querySelector('iframe').contentDocument.getElementById('panes').ariaBusy"
        " === 'false' && document.querySelector('iframe').contentDocument.title.includes('tiny')"
    )
    inside = "document.querySelector('iframe').contentDocument"
    assert browser.evaluate(f"{inside}.querySelectorAll('#grid [role=gridcell]').length") == 12
    assert not browser.evaluate(f"{inside}.getElementById('copy-link').checkVisibility()")
    tall = "document.querySelector('iframe').clientHeight"
    browser.wait_for(f"Math.abs({tall} - {inside}.body.scrollHeight) < 40")  # it fits
    browser.evaluate(f"{inside}.querySelector('input[value=lines]').click()")
    browser.wait_for(f"{inside}.getElementById('lines').checkVisibility()")
    assert browser.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), WIDTHS_AND_SCHEMES)
def test_the_file_keeps_nobody_out(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    need_axe()
    browser.resize(width, 844)
    browser.prefer(scheme)
    made = bt.view(encoder_of(), (TEXT, "it is [MASK] ."))
    show(browser, made, tmp_path)
    for step in ("#start-tour", "#tour-end", "input[value=lines] + span", "#present"):
        browser.click(step)
        idle(browser)
        assert find_barriers(browser) == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    keep(browser, f"view-{scheme}-{width}.png")
    assert browser.complaints == []
