"""The atlas from made-up results: what belongs to a model, what the page says, nothing runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import tiny
import toy_atlas as toy
from bertology.cli.report import _about as describe
from bertology.errors import ResultNotFoundError, UnknownNameError
from bertology.report.atlas.about import About, commands_of, read_about
from bertology.report.atlas.chapters import _figure_title, table_piece
from bertology.report.atlas.compare import (
    Side,
    compare_data,
    compare_piece,
    shared_measures,
    two_models,
)
from bertology.report.atlas.export import export_atlas
from bertology.report.atlas.gathering import gather
from bertology.report.atlas.naming import entries_of, portable_name, short_name
from bertology.report.atlas.page import atlas_page
from bertology.report.atlas.profiles import profiles_piece
from bertology.report.intervals import with_intervals
from bertology.report.latex import as_latex
from bertology.report.slim import as_address, slim
from bertology.results.measures import Measure
from bertology.results.rendering import render
from bertology.results.store import Store
from bertology.studies import JOINS
from toy_atlas import EVIL


def about(study: str) -> About:
    return read_about(
        f"Does it? {EVIL}\n\n    Method: we look.\n\n    Source: A (2019). Limits: none at all.\n",
        defaults={"seed": 0},
    )


# Which results belong -----------------------------------------------------------------------------


def test_a_model_has_its_own_results_and_those_of_what_was_made_from_it(toy_store: Store) -> None:
    found = gather(toy_store, "toy")
    assert (found.name, found.tasks, found.grid) == ("toy", ("task-a", "task-b"), (2, 3))
    labels = {e.label for e in found.entries}
    assert labels == {
        "plain", "fine-tuned on task-a", "fine-tuned on task-a, over plain",
        "fine-tuned on task-b",
    }  # fmt: skip
    assert gather(toy_store, "aaaa1111").entries[0].label == "plain"  # by its fingerprint


def test_a_task_leaves_out_what_belongs_to_others(toy_store: Store) -> None:
    toy_store.save(toy.make(toy.MODEL, "task-b"))  # the model itself, over the other task's data
    found = gather(toy_store, "toy", "task-a")
    assert found.tasks == ("task-a",)
    assert {e.data for e in found.entries} == {"plain", "task-a"}
    with pytest.raises(UnknownNameError, match="task-a") as error:
        gather(toy_store, "toy", "task-z")
    assert "bertology finetune" not in str(error.value)  # nobody knows such a task


def test_texts_that_were_looked_at_are_not_what_a_model_learnt(toy_store: Store) -> None:
    """As of a model whose record does not say it, compared with the model before over a corpus."""
    tuned = {"name": "/far/away/demo/model", "fingerprint": "9999"}
    toy_store.save(toy.make(tuned, "grammar", others={"before": toy.MODEL}))
    assert "fine-tuned on an unknown task (demo/model), over grammar" in {
        e.label for e in gather(toy_store, "toy").entries
    }
    toy_store.save(toy.make({**tuned, "fingerprint": "98", "head": "classification"}, "task-d"))
    labels = {e.label for e in gather(toy_store, "toy").entries}
    assert {"fine-tuned on task-d", "fine-tuned on task-d, over grammar"} < labels


def test_a_model_that_is_known_by_its_children_alone(toy_store: Store) -> None:
    origin = {"name": "elder", "fingerprint": "eeee", "task": "task-e"}
    child = {"name": "/far/away/elder-tuned", "fingerprint": "e1e1", "tuned_from": origin}
    toy_store.save(toy.make(child, "task-e"))
    found = gather(toy_store, "elder")
    assert (found.name, found.tasks, found.grid) == ("elder", ("task-e",), (2, 3))
    assert [e.label for e in found.entries] == ["fine-tuned on task-e"]
    assert found.model["fingerprint"] == "eeee"
    with pytest.raises(ResultNotFoundError, match="Did you mean 'elder'"):
        gather(toy_store, "eldr")


def test_a_folder_names_a_model_and_a_short_name_must_be_unique(toy_store: Store) -> None:
    assert {e.data for e in gather(toy_store, toy.TUNED_A).entries} == {"task-a", "plain"}
    with pytest.raises(ResultNotFoundError, match="2 models") as error:
        gather(toy_store, "toy-tuned")
    assert toy.TUNED_B in str(error.value)


def test_nothing_stored_says_how_to_fill_the_store(toy_store: Store) -> None:
    with pytest.raises(ResultNotFoundError) as error:
        gather(toy_store, "unheard-of")
    for text in (
        "other, toy",
        "report unheard-of --measure",
        "verify unheard-of",
        "attention-maps",
    ):
        assert text in str(error.value)


def test_newer_versions_and_newer_weights_replace_old_ones(toy_store: Store) -> None:
    newer = toy.make(toy.MODEL, study_version=2, created="2020-01-01T00:00:00+00:00")
    toy_store.save(newer)
    own = [e for e in gather(toy_store, "toy").entries if not e.task]
    assert [e.result.identity for e in own] == [newer.identity]
    again = {**toy.MODEL, "fingerprint": "eeee"}
    toy_store.save(toy.make(again, created="2999-01-01T00:00:00+00:00"))
    found = gather(toy_store, "toy")
    assert [e.result.provenance.model["fingerprint"] for e in found.entries] == ["eeee"]
    assert found.left_out == 1


def test_a_fingerprint_stands_for_its_own_weights(toy_store: Store) -> None:
    newer = {**toy.MODEL, "fingerprint": "eeee55556666"}
    toy_store.save(toy.make(newer, created="2999-01-01T00:00:00+00:00"))
    for asked, tasks in (("aaaa1111", 2), ("eeee5555", 0)):
        found = gather(toy_store, asked)
        own = {e.result.provenance.model["fingerprint"][:8] for e in found.entries if not e.task}
        assert (own, len(found.tasks), found.left_out) == ({asked}, tasks, 1)


def test_a_folder_taught_again_belongs_to_what_it_was_made_from_last(toy_store: Store) -> None:
    origin = {"name": "other", "fingerprint": "dddd", "task": "task-c"}
    again = {"name": toy.TUNED_A, "fingerprint": "ffff", "tuned_from": origin}
    toy_store.save(toy.make(again, "task-c", created="2999-01-01T00:00:00+00:00"))
    assert gather(toy_store, "toy").tasks == ("task-b",)
    other = gather(toy_store, "other")
    assert other.tasks == ("task-c",)
    tuned = [e.result.provenance.model["fingerprint"] for e in other.entries if e.task]
    assert tuned == ["ffff"]


def test_weights_that_do_not_say_where_they_are_from_go_with_their_folder(toy_store: Store) -> None:
    with_head = {"name": toy.TUNED_B, "fingerprint": "c1c1", "head": "mlm"}
    toy_store.save(toy.make(with_head, "task-b"))

    def tuned() -> set[str]:
        found = gather(toy_store, "toy").entries
        return {e.result.provenance.model["fingerprint"] for e in found if e.task == "task-b"}

    assert tuned() == {"cccc", "c1c1"}
    origin = {"name": "other", "fingerprint": "dddd", "task": "task-b"}
    toy_store.save(toy.make({**with_head, "tuned_from": origin}, "task-c"))
    assert tuned() == {"cccc"}


def test_a_model_is_one_however_its_path_was_given(
    toy_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = {"name": "toy", "fingerprint": toy.MODEL["fingerprint"], "task": "task-a"}
    here = {"name": "away/a-1/toy-tuned", "fingerprint": "b1b1", "tuned_from": origin}
    toy_store.save(toy.make({**here, "head": "classification"}, "task-a"))
    elsewhere = {**here, "name": "a-1/toy-tuned", "fingerprint": "bbbb"}
    toy_store.save(toy.make(elsewhere, "more"))  # from another folder: the weights tell
    with monkeypatch.context() as patch:
        patch.setattr("os.getcwd", lambda: "/far")
        found = gather(toy_store, "toy")
        with pytest.raises(ResultNotFoundError, match="2 models"):
            gather(toy_store, "toy-tuned")
    assert found.tasks == ("task-a", "task-b")
    tuned = [e for e in found.entries if e.task == "task-a"]
    assert {e.result.provenance.model["fingerprint"] for e in tuned} == {"bbbb", "b1b1"}
    assert {e.data for e in tuned} == {"task-a", "plain", "more"}


def test_labels_tell_data_from_a_task_of_a_like_name() -> None:
    made = [toy.make(toy.MODEL, data) for data in ("grammar", "grammar-entailment")]
    for task in ("grammar-entailment", "grammar-entailment (a/b)"):
        assert [e.label for e in entries_of([(task, made)])] == [
            f"fine-tuned on {task}, over grammar",
            f"fine-tuned on {task}",
        ]
    (joined,) = entries_of([("mrpc", [toy.make(toy.MODEL, "", over="all tasks")])])
    assert joined.label == "all tasks"


def test_results_that_look_alike_are_told_apart_by_what_differs(toy_store: Store) -> None:
    toy_store.save(toy.make(toy.MODEL, parameters={"seed": 7}))
    labels = [e.label for e in gather(toy_store, "toy").entries if not e.task]
    assert sorted(labels) == ["plain (seed 0)", "plain (seed 7)"]


def test_names_are_short() -> None:
    assert short_name("/a/b/c") == "c"
    assert short_name("user/model") == "user/model"
    assert short_name("runs/x/model") == "x/model"  # "model" alone says nothing
    for given, told in (("/", "/"), ("user/model", "user/model"), ("~/m/", "./m")):
        assert portable_name(given) == told


def test_provenance_tells_what_a_model_was_tuned_from(tmp_path: Path) -> None:
    from bertology.model.encoder import Encoder
    from bertology.run.loading import describe_model

    record = {"schema": 1, "task": "mrpc", "base": {"name": "b", "fingerprint": "f"}}
    (tmp_path / "bertology.json").write_text(json.dumps(record))
    encoder = Encoder(tiny.model("bert"), name=str(tmp_path))
    told = describe_model(encoder)
    assert told["tuned_from"] == {"name": "b", "fingerprint": "f", "task": "mrpc"}
    assert told["parameters"] == sum(p.numel() for p in encoder.model.parameters())
    (tmp_path / "bertology.json").write_text("{")
    assert "tuned_from" not in describe_model(encoder)


# Pieces -------------------------------------------------------------------------------------------


def test_a_study_speaks_for_itself() -> None:
    told = about("toy-study")
    assert (told.method, told.source, told.limits) == ("we look.", "A (2019).", "none at all.")
    assert told.question.startswith("Does it?")
    assert read_about(None).question == ""


def test_commands_have_no_folders_of_a_machine() -> None:
    made, tuned, *_ = toy.results()
    assert commands_of(made.provenance, about("x")) == [
        "bertology run toy-study --model ./toy --store ./results"
    ]
    assert commands_of(tuned.provenance, about("x")) == [
        "bertology run toy-study --model ./toy-tuned --corpus task-a --limit 12"
    ]
    ours = toy.make({"name": "/home/me/models/task-a-1/toy-tuned", "fingerprint": "b"}, "task-a")
    (command,) = commands_of(ours.provenance, about("x"))
    assert "--model models/task-a-1/toy-tuned " in command


def test_slim_pictures_say_the_same_in_less(toy_store: Store) -> None:
    svg = render(toy.results()[0].plot("heads"))
    small = slim(svg)
    assert len(small) < 0.7 * len(svg)
    assert "value 0.12345" in small  # a number that is text stays what it is
    before, after = (ElementTree.fromstring(text) for text in (svg.decode(), small))
    paths = [len(list(t.iter("{http://www.w3.org/2000/svg}path"))) for t in (before, after)]
    assert paths[0] == paths[1]
    assert '"' not in as_address(small)


def test_latex_escapes_and_numbers_stay_numbers() -> None:
    table = pd.DataFrame({"a_b": [1.23456, np.nan], "text": ["5 % & $", "x_y"], "n": [1, 2]})
    assert as_latex(table).splitlines()[1:] == [
        r"\begin{tabular}{rlr}", r"\toprule", r"a b & text & n \\", r"\midrule",
        r"$1.235$ & 5 \% \& \$ & $1$ \\", r"-- & x\_y & $2$ \\", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


def test_differences_are_conservative_and_say_when_the_data_differ(toy_store: Store) -> None:
    own = gather(toy_store, "toy", "task-a")
    base = Side("toy", tuple(e for e in own.entries if not e.task))
    tuned = Side("tuned", tuple(e for e in own.entries if e.task))
    pairs = {p.first[1].name: p for p in shared_measures(base, tuned)}
    assert set(pairs) == {"gain", "kind"}
    assert pairs["gain"].same_data
    assert pairs["gain"].second[0].data == "plain"
    gain, kind = compare_data(list(pairs.values()))
    assert gain["difference"]["values"] == pytest.approx([0.6] * 6)
    assert gain["difference"]["low"] == pytest.approx([0.4] * 6)
    assert gain["difference"]["high"] == pytest.approx([0.8] * 6)
    assert gain["difference"]["sure"] == [1] * 6
    assert "difference" not in kind
    elsewhere = Side("tuned", tuple(e for e in tuned.entries if e.data == "task-a"))
    assert [p.same_data for p in shared_measures(base, elsewhere)] == [False, False]


def sides(first: dict[str, Any], second: dict[str, Any]) -> tuple[Side, Side]:
    made = [entries_of([("", [toy.make(toy.MODEL, **more)])]) for more in (first, second)]
    return Side("a", made[0]), Side("b", made[1])


def test_only_results_of_the_same_settings_are_subtracted() -> None:
    zero, uniform = ({"parameters": {"seed": 0, "method": m}} for m in ("zero", "uniform"))
    assert shared_measures(*sides(zero, uniform)) == []
    assert len(shared_measures(*sides(zero, zero))) == 2
    # What each side names as its own: another model, or the results it was joined from.
    before = [{"parameters": {"before": n}, "others": {"before": toy.MODEL}} for n in "ab"]
    joined = [{"study": "head-profile", "results": {"x": n}} for n in "ab"]
    for first, second in (before, joined):
        assert len(shared_measures(*sides(first, second))) == 2
    # One side has both settings, the other only one: that one meets its like.
    own = [toy.make(toy.MODEL, **more) for more in (zero, uniform)]
    (pair, _) = shared_measures(Side("a", entries_of([("", own)])), sides(uniform, zero)[0])
    assert pair.first[0].result is own[1]


def test_a_comparison_has_the_level_of_each_interval() -> None:
    asked: dict[str, Any] = {"parameters": {"level": 0.9}}
    gain, kind = compare_data(shared_measures(*sides(asked, asked)))
    assert [side["level"] for side in gain["sides"]] == [0.9, 0.9]
    assert not any("level" in side for side in kind["sides"])


def test_two_without_a_shared_measure_say_how_to_get_one() -> None:
    settings = [{"parameters": {"seed": seed}} for seed in (0, 1)]
    piece = str(compare_piece(*sides(*settings), []))
    command = "bertology run attention-maps --model toy --corpus grammar --limit 300"
    assert piece.count(command) == 2


def test_a_chart_of_nothing_begins_at_nothing() -> None:
    made = toy.make(toy.MODEL)
    made.arrays["gain"][:] = 0.0
    flat = Measure("x", "X", np.zeros(2), "per cent")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy.Toy, "measures", lambda self: [flat])
        chart = str(profiles_piece(entries_of([("", [made])]), 2))
    assert re.findall(r'text-anchor="end">(.*?)</text>', chart) == [
        "0", "0.2", "0.4", "0.6", "0.8", "1",
    ]  # fmt: skip


def test_values_and_their_bounds_are_one_cell() -> None:
    ends = {"low": [1.0], "high": [3.0], "simultaneous_low": [0.0], "simultaneous_high": [4.0]}
    table = pd.DataFrame({"n": [5], "mean": [2.0], "median": [2.5], **ends, "p": [0.5]})
    columns, rows = with_intervals(table)  # bounds for all rows in place of those for one
    assert columns == ["n", "mean", "median", "p"]
    assert rows == [[5, "2 [0, 4]", 2.5, 0.5]]
    alone = table.drop(columns=["simultaneous_low", "simultaneous_high"])
    assert with_intervals(alone)[1] == [[5, "2 [1, 3]", 2.5, 0.5]]
    wider = alone.assign(mean_low=1.5, mean_high=2.5)
    columns, rows = with_intervals(wider)
    assert (columns[3], rows[0][1], rows[0][3]) == ("interval", "2 [1.5, 2.5]", "[1, 3]")
    moved = pd.DataFrame({"cosine": [0.5], "change": [2.0], **ends}).drop(columns=["low", "high"])
    assert with_intervals(moved) == (["cosine", "change"], [[0.5, "2 [0, 4]"]])
    of_class = {f"weight{end}": [float(i)] for i, end in enumerate(
        ("", "_low", "_high", "_simultaneous_low", "_simultaneous_high"))}  # fmt: skip
    assert with_intervals(pd.DataFrame(of_class)) == (["weight"], [["0 [3, 4]"]])


def test_counts_and_texts_are_said_as_people_say_them() -> None:
    table = pd.DataFrame({f"c{i}": range(7) for i in range(10)})
    piece = str(table_piece(table, name="t", key="k"))
    assert "1 more row and 1 more column." in piece
    assert _figure_title(toy.make(toy.MODEL), "map-0") == "Maps of “a <b> c”"
    assert _figure_title(toy.make(toy.MODEL), "heads") == "Heads"
    assert "the documentation says how" in describe("map-types").limits


def test_measures_in_other_units_have_a_chart_of_their_own() -> None:
    made = [toy.make(toy.MODEL, data) for data in ("a", "b", "c")]
    made[1].arrays.attrs["unit"] = "points of accuracy"
    chart = str(profiles_piece(entries_of([("", made)]), 2))
    units = re.findall('unit-line"><span>(.*?)</span>', chart)
    assert units == ["points of F1", "points of accuracy"]


@pytest.mark.parametrize("study", JOINS.names())
def test_joined_results_have_method_and_limits(study: str) -> None:
    told = describe(study)
    assert told.question
    assert told.method
    assert told.limits
    assert not told.runs


def test_every_figure_and_table_becomes_a_file(toy_store: Store, tmp_path: Path) -> None:
    made = toy.results()[0]
    drawings = [made.figures()["heads"]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy.Toy, "drawings", lambda self: drawings)
        subject = gather(toy_store, "other")
        written = {str(p.relative_to(tmp_path)) for p in export_atlas(subject, tmp_path)}
    folder = f"toy-study-plain-{subject.entries[0].result.identity[:6]}"
    expected = {f"heads.{e}" for e in ("csv", "tex", "svg", "png", "pdf")}
    expected |= {"more.csv", "more.tex", "grids/gain.svg", "grids/gain.pdf", "captions.txt"}
    assert written == {f"{folder}/{name}" for name in expected}
    assert (tmp_path / folder / "heads.pdf").read_bytes().startswith(b"%PDF")


# The page -----------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a browser would see: elements, addresses, and what stands in figures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._in_script = tag == "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts.append(data)

    def of(self, tag: str, fits: Callable[[dict[str, str]], bool] = bool) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag and fits(attributes)]


@pytest.fixture
def page(toy_store: Store) -> str:
    return atlas_page(gather(toy_store, "toy"), about)


def test_the_page_needs_nothing_but_itself_and_runs_nothing_it_was_told(page: str) -> None:
    seen = Page(page)
    addresses = [a.get(n, "") for _, a in seen.tags for n in ("src", "href") if n in a]
    assert all(address.startswith(("#", "data:image/svg+xml,")) for address in addresses)
    assert "http://" not in re.sub(r"http://www\.w3\.org/[\w/]+", "", page)
    assert not [a for _, a in seen.tags if "onerror" in a]
    assert len(seen.of("script", lambda a: True)) == 2
    assert "default-src 'none'" in page
    assert "/far/away" not in page


def test_the_page_shows_every_study_figure_and_claim(page: str) -> None:
    seen = Page(page)
    ids = {a["id"] for _, a in seen.tags if "id" in a}
    assert {"heads", "layers", "claims", "studies", "made", "study-toy-study"} <= ids
    pictures = seen.of("img")
    assert len(pictures) == 4  # one result each; the broken figure is left out
    assert all("One cell for each head." in p["alt"] for p in pictures)
    for words in (
        "We look.",
        "None at all.",
        "1,234 without its head",
        "task-a, task-b",
        "fine-tuned on task-b",
    ):
        assert words in page
    rows = {a["id"]: a["data-verdict"] for a in seen.of("tr", lambda a: "data-verdict" in a)}
    assert rows["claim-toy.unknown"] == "not run"
    assert rows["claim-toy.gains"] == "mixed"
    assert "bertology verify toy --claims toy.unknown" in page
    links = {a["href"] for a in seen.of("a")}
    assert {href[1:] for href in links} <= ids  # every link leads somewhere


def test_the_page_says_how_many_claims_hold_by_chance(page: str, toy_store: Store) -> None:
    assert "Judged here: 2 claims, with 8 verdicts, 7 of them sure." in page
    assert "about 0.05 at most would still be said to hold" in page
    strict = atlas_page(gather(toy_store, "toy"), about, across_claims=True)
    assert "The error is held over all claims" in strict


def test_the_data_of_the_page_are_the_measures(page: str) -> None:
    data = json.loads(Page(page).scripts[0])
    gain, kind = data["measures"]
    assert (gain["id"], len(gain["sets"])) == ("toy-study/gain", 4)
    own = next(s for s in gain["sets"] if s["label"] == "plain")
    assert own["values"] == pytest.approx([-0.3, -0.2, -0.1, 0, 0.1, 0.2])
    assert (own["unit"], own["middle"], own["sure"]) == ("points of F1", 0, [0, 0, 0, 0, 0, 1])
    assert kind["sets"][0]["values"][-1] is None
    assert data["means"][0]["peaks"] == [0.25, 1, 0.25, 0.25, 0.25, 0.25]
    assert data["examples"][0]["tokens"] == ["a", "<b>", "c"]


def test_two_models_are_compared(toy_store: Store) -> None:
    subject, other = gather(toy_store, "toy"), gather(toy_store, "other")
    page = atlas_page(subject, about, two_models(subject, other))
    data = json.loads(Page(page).scripts[0])
    assert data["sides"] == ["toy", "other"]
    assert data["pairs"][0]["same"] is True
    assert "smallest to the largest difference" in page
    assert "<td>yes</td>" in page  # a verdict that changed
