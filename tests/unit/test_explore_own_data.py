"""`explore --task my.csv`: gold labels beside answers, right and wrong ones, no hidden words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from accessibility import find_barriers, need_axe
from bertology.cli.main import app
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.server.explore import explore_app
from bertology.server.judging import classes_of
from browser import Browser, find_browser
from explorer import answer, asking, encoder_of, served, view_of
from pages import WIDTHS_AND_SCHEMES, idle, keep, page_state, pick, text, texts

TEXTS = [f"{noun} {verb} {end}" for noun in ("the dog", "it", "the key") for verb in ("is", "are")
         for end in ("good .", "bad .", "here .")]  # fmt: skip
NAMES = ("negative", "positive")
WRONG = (2, 5, 11)  # the numbers of the examples with the label that the model does not give


def classifier() -> Encoder:
    encoder = encoder_of("classification", labels=2)
    encoder.config.id2label = dict(enumerate(NAMES))
    return encoder


def table(encoder: Encoder, path: Path, names: tuple[str, str] = NAMES) -> Path:
    """A file with the model's own answers as labels, and the other label where it shall err."""
    lines = ["review,opinion"]
    for number, words in enumerate(TEXTS):
        said = int(encoder.run(words).logits.argmax())
        lines.append(f"{words},{names[said if number not in WRONG else 1 - said]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def own(encoder: Encoder, folder: Path) -> Corpus:
    return load_corpus(table(encoder, folder / "my.csv"), text="review", label="opinion")


def test_right_and_wrong_are_those_of_the_model(tmp_path: Path) -> None:
    encoder = classifier()
    corpus = own(encoder, tmp_path)
    with asking(encoder, own=[corpus]) as client:
        tasks = client.get("/api/model").json()["tasks"]
        assert tasks[0] == {"name": "my", "title": "my", "own": True}
        found = answer(client, "judged", task="my")
        assert found["matched"]
        assert found["wrong"] == list(WRONG)
        assert sorted(found["right"] + found["wrong"]) == list(range(len(TEXTS)))
        told = answer(client, "predict", view=view_of(TEXTS[2]))["gold"]
        label = client.get("/api/examples?task=my&number=2").json()["label"]
        assert told == {"label": label, "class": label}
        assert answer(client, "predict", view=view_of("the dog"))["gold"] is None
        assert client.post("/api/judged", json={"task": "nothing"}).status_code == 400


def test_a_task_of_other_classes_is_not_judged(tmp_path: Path) -> None:
    encoder = encoder_of("classification", labels=3)
    corpus = own(classifier(), tmp_path)
    with asking(encoder, own=[corpus]) as client:
        assert answer(client, "judged", task="my") == {"right": [], "wrong": [], "matched": False}
        gold = answer(client, "predict", view=view_of(TEXTS[0]))["gold"]
        assert gold["class"] is None
        assert gold["label"] in NAMES
    with asking(encoder_of(), own=[corpus]) as client:  # it fills in words
        assert answer(client, "judged", task="my")["matched"] is False
        assert answer(client, "predict", view=view_of(TEXTS[0]))["gold"] is None


def test_labels_that_may_mean_either_are_refused(tmp_path: Path) -> None:
    encoder = classifier()
    path = table(encoder, tmp_path / "my.csv", ("poor", "good"))
    corpus = load_corpus(path, text="review", label="opinion")
    with pytest.raises(CapabilityError, match="Which label is which"):
        classes_of(encoder, corpus)
    renamed = corpus.relabelled({"poor": "negative", "good": "positive"})
    assert classes_of(encoder, renamed) == {name: name for name in NAMES}


def test_the_command_refuses_before_it_loads_a_model(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("said,meant\ngood,1\n")
    asked = ["explore", str(tmp_path / "none"), "--task", str(tmp_path / "my.csv"), "--port", "0"]
    done = CliRunner().invoke(app, asked, prog_name="bertology")
    assert done.exit_code == 2
    assert "said, meant" in done.output, "the columns that there are"
    done = CliRunner().invoke(app, [*asked, "--columns", "text=said"], prog_name="bertology")
    assert "no model folder" in done.output


# In the browser ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    find_browser()
    encoder = classifier()
    corpus = own(encoder, tmp_path_factory.mktemp("data"))
    with served(lambda port: explore_app(encoder, port=port, own=[corpus])) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(width=1280, height=800) as made:
        yield made


def begin(browser: Browser, address: str) -> None:
    browser.open("about:blank")
    browser.open(address)
    idle(browser, "!document.getElementById('judged').hidden && document.querySelector('#tokens')")


def shown(browser: Browser, number: int) -> None:
    note = f"Example {number + 1} of {len(TEXTS)}"
    idle(browser, f"document.getElementById('example-note').textContent.startsWith('{note} ·')")
    browser.wait_for(f"document.getElementById('text').value === {TEXTS[number]!r}")
    idle(browser, "!document.getElementById('gold').hidden")


def test_own_data_in_the_browser(browser: Browser, address: str) -> None:
    begin(browser, address)
    shown(browser, 0)
    assert "gold label" in text(browser, "#example-note")
    browser.wait_for("document.querySelector('#gold b.right')")
    assert texts(browser, "#judged option") == [
        "all examples", f"only right answers ({len(TEXTS) - 3})", "only wrong answers (3)",
    ]  # fmt: skip
    assert texts(browser, "#tokens button") == [], "a classifier fills in no words"
    assert not browser.evaluate("document.getElementById('mask-hint').checkVisibility()")
    assert not browser.evaluate("document.getElementById('no-predictions').checkVisibility()")

    pick(browser, "judged", "wrong")
    for number in (*WRONG, WRONG[0]):  # after the last comes the first
        shown(browser, number)
        browser.wait_for("document.querySelector('#gold b.wrong')")
        browser.click("#another")
    shown(browser, WRONG[1])
    told = text(browser, "#gold")
    assert page_state(browser)["page"]["example"] == {"task": "my", "number": 5, "only": "wrong"}
    keep(browser, "own-data.png")

    begin(browser, browser.evaluate("location.href"))  # the link shows the same to everybody
    shown(browser, WRONG[1])
    assert text(browser, "#gold") == told
    assert browser.evaluate("document.getElementById('judged').value") == "wrong"
    browser.click("#another")
    shown(browser, WRONG[2])

    browser.press("o")
    idle(browser, "document.querySelectorAll('#gold b').length === 3")
    assert "After, the model says" in text(browser, "#gold")
    browser.click("#text")
    browser.type(" dog")
    idle(browser, "document.getElementById('gold').hidden")
    assert text(browser, "#example-note") == "", "what is typed is no example"
    assert browser.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), WIDTHS_AND_SCHEMES)
def test_own_data_keep_nobody_out(browser: Browser, address: str, width: int, scheme: str) -> None:
    need_axe()
    browser.resize(width, 844)
    browser.prefer(scheme)
    begin(browser, address)
    pick(browser, "judged", "wrong")
    shown(browser, WRONG[0])
    assert find_barriers(browser) == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    keep(browser, f"own-data-{scheme}-{width}.png")
    assert browser.complaints == []
