"""Compression table: what is kept of known skills, what is picked, and a killed run goes on."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

import bertology as bt
import made_compressions
import made_tunings
import tiny
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import BertologyError, DataError, JobError, ParameterError
from bertology.metrics import find_metric
from bertology.model.encoder import Encoder
from bertology.report.figures.trade_offs import trade_offs, unbeaten
from bertology.report.intervals import with_intervals
from bertology.results.known_claims import load_claims
from bertology.results.result import Result
from bertology.stats.crossed import crossed_ratio
from bertology.studies.compression.compression_table import (
    TIMINGS,
    CompressionTable,
    CompressionTableResult,
)
from bertology.studies.compression.compression_table.rows import (
    ROWS,
    TEACHER,
    Row,
    named_files,
    read_rows,
)
from bertology.studies.compression.compression_table.scores import CompressionScores
from bertology.studies.designs.scored_runs import ScoredRuns
from bertology.studies.study import Context
from bertology.train.compress.work import Work
from made_compression_tables import ALONE_HALF, PUBLISHED, SHAPE, STUDENTS, made_up
from made_tunings import WORDS, KilledError
from result_conformance import ResultConformance, claims_of

PAPER = "primer-compression."


def test_figures_show_what_a_method_saves() -> None:
    """A file with zeros is as large as before: movement pruning is not asked for fewer bytes."""
    some = ("pkd-half", "q8bert", "mvp", "imp", "layer_choice:layers=3+int8")
    result = made_up(n=60, seeds=2, methods=some, fewer={"pkd-half": 1.6},
                     nonzero={"mvp": 3.8, "imp": 1.6})  # fmt: skip
    panel = result.plot("kept").axes[2]
    dots, published = (
        next(line for line in panel.get_lines() if line.get_marker() == mark) for mark in "oD"
    )
    assert panel.get_xscale() == "log"
    found = dict(zip(result.table()["row"], np.asarray(dots.get_xdata()), strict=True))
    assert found["pkd-half"] == pytest.approx(1.6, rel=1e-3)
    assert found["q8bert"] == 4
    assert (found["mvp"], found["imp"]) == pytest.approx((3.8, 1.6), rel=1e-3)
    beside = dict(zip(result.table()["row"], np.asarray(published.get_xdata()), strict=True))
    assert beside["mvp"] == 33
    assert np.isnan(beside["imp"])  # a range
    drawing = next(d for d in result.drawings() if d.name == "kept")
    assert "ranges such as 94-100 have none" in drawing.caption


def test_many_rows_have_small_dots_with_numbers_beside_them() -> None:
    some = (*STUDENTS, "q8bert", "gobo", "mvp", "imp")
    figure = made_up(n=60, seeds=2, methods=some).plot("pareto")
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [Text.get_window_extent(text) for text in axes.texts]
        assert len(boxes) > len(some)
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_where_the_teacher_may_be_a_constant_answer_no_share_is_excluded() -> None:
    some = ("pkd-half", "gobo")
    result = made_up(
        dict.fromkeys(some, 0.62) | {TEACHER: 0.64}, constant=0.58, n=200, methods=some, luck=0.001
    )
    row = result.table("losses").set_index("row").loc["gobo"]
    assert (row["kept_above_constant_low"], row["kept_above_constant_high"]) == (-np.inf, np.inf)
    columns, cells = with_intervals(result.table("losses"))
    assert cells[2][columns.index("kept_above_constant")].endswith("[-inf, inf]")
    arrows = {line.get_marker() for line in result.plot("kept").axes[1].get_lines()}
    assert {"<", ">"} <= arrows


def test_the_reason_is_that_no_row_is_a_small_model_and_not_that_nothing_was_timed() -> None:
    bits = {"bytes_per_weight": {"16-bit": 2.0}, "fewer": {"power-bert": 1.0}}
    some = ("16-bit", "power-bert")
    result = made_up(0.75, n=300, methods=some, times=("none",), **bits)  # type: ignore[arg-type]
    assert result.answer.startswith("Nothing is sure: no row is a small model, at least 1.5 times")
    assert "no row is a student" in result.answer
    assert "CPU" not in result.answer
    assert "16 bits alone" in result.reasons()["best_small_kept"]
    assert "no times were measured" in result.reasons()["power_bert_faster"]
    alone = made_up(0.75, n=300, methods=("pkd-half",))
    assert not {"best_small_kept", "best_student_over_alone"} & set(alone.reasons())
    few = made_up(1.0, n=3, methods=("pkd-half",), constant=-1.0)
    assert "on at least 4 examples" in few.reasons()["best_small_kept"]


def test_one_seed_does_not_make_a_lucky_teacher_one_that_learnt() -> None:
    """53 of 100 against 50: without other seeds, examples tell that it may be a constant answer."""
    lucky = made_up(0.6, seeds=1, n=100, constant=0.5, methods=("pkd-half",), draw=3)
    score = lucky.table().set_index("row").loc[TEACHER, "score"]
    assert 0.5 < score < 0.6
    assert not lucky.evidence()
    assert "does not surely beat" in lucky.reasons()["pkd_half_smaller"]
    sure = made_up(0.8, seeds=1, n=100, constant=0.5, methods=("pkd-half",))
    assert "pkd_half_smaller" in sure.evidence()


def test_the_answer_names_all_that_were_picked_as_best() -> None:
    one = made_up(0.75, n=100, methods=("pkd-half", "imp"), fewer={"imp": 1.0})
    assert "The best small model (pkd-half, 2.5 times smaller) keeps" in one.answer
    assert "The best student (pkd-half) is" in one.answer
    some, sizes = ("pkd-half", "gobo", "q8bert"), {"gobo": 0.5, "q8bert": 1.0}
    shares = {TEACHER: 0.85, "pkd-half": 0.8, "gobo": 0.79, "q8bert": 0.6}
    mixed = [
        made_up(shares, n=100, seeds=5, luck=0.02, methods=some, bytes_per_weight=sizes, draw=d)
        for d in range(4)
    ]
    for found in mixed:
        counts = dict(pick.split(":") for pick in found.facts["best_small_picks"].split())
        assert sum(map(int, counts.values())) == 10  # of each seed on each half of the examples
        if len(counts) > 1 and int(counts[found.facts["best_small"]]) > 5:
            [other] = set(counts) - {found.facts["best_small"]}
            assert f"(mostly {found.facts['best_small']}, " in found.answer
            assert f"times smaller, else {other}) keeps" in found.answer
    assert any("mostly" in found.answer for found in mixed)
    first = mixed[0]
    first.arrays.attrs |= {"best_small": "gobo", "best_small_picks": "gobo:2 q8bert:2 pkd-half:1"}
    assert "(gobo, q8bert or pkd-half, 2.5 to 8.0 times smaller) keeps" in first.answer
    many = " ".join(f"{name}:1" for name in (*some, TEACHER, *ALONE_HALF))
    first.arrays.attrs |= {"best_student": "pkd-half", "best_student_picks": many}
    assert "(pkd-half, gobo, q8bert or one of 3 more)" in first.answer
    del first.arrays.attrs["best_small_picks"]  # as older results have it
    assert "The best small model (gobo, 8.0 times smaller)" in first.answer


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return made_up({"pkd-half": 0.7}, seeds=2, n=60, methods=("pkd-half", "q8bert"))


# Made-up runs -------------------------------------------------------------------------------------


def test_a_method_that_keeps_all_is_100_per_cent_and_a_broken_one_is_not() -> None:
    same = made_up(0.8, same=True, n=200).table().set_index("row")
    assert same.loc["pkd-half", "kept"] == 1
    assert 0.9 < same.loc["pkd-half", "kept_low"] < 1 < same.loc["pkd-half", "kept_high"] < 1.1
    assert (same["published_kept"] != "").sum() == len(PUBLISHED)
    some = ("pkd-half", "theseus-half", "q8bert", "gobo")
    broken = made_up({"pkd-half": 0.5, "teacher": 0.8}, n=2000, luck=0.001, methods=some)
    row = broken.table().set_index("row").loc["pkd-half"]
    assert row["kept"] == pytest.approx(0.5 / 0.8, abs=0.03)
    assert row["kept_low"] < 0.5 / 0.8 < row["kept_high"]
    losses = broken.table("losses").set_index("row").loc["pkd-half"]
    assert losses["over_teacher"] == pytest.approx(-0.3, abs=0.03)
    assert losses["kept_above_constant"] == pytest.approx(0, abs=0.06)
    assert losses["net"] == pytest.approx(losses["won"] - losses["lost"])
    assert losses["changed"] == pytest.approx(losses["won"] + losses["lost"])
    assert losses["changed_low"] < losses["changed"] < losses["changed_high"]
    told = claims_of(broken)
    assert told[f"{PAPER}pkd-half-keeps"] == "not-applicable"  # it learnt nothing
    assert told[f"{PAPER}theseus-keeps"] == "holds"
    assert told[f"{PAPER}precision-saves-memory"] == "holds"


def test_known_ratios_of_size_and_time_come_back() -> None:
    some = ("tinybert", "pkd-half")
    result = made_up(n=100, seeds=2, faster={"tinybert": 9.4}, methods=some)
    row = result.table().set_index("row").loc["tinybert"]
    assert (row["smaller"], row["fewer"]) == (2.5, 2.5)
    assert row["faster_1"] == pytest.approx(9.4, rel=0.05)
    assert row["faster_1_low"] < row["faster_1"] < row["faster_1_high"]
    assert row["published_faster"] == "9.4"
    commands = result.table("commands").set_index("row")["command"]
    assert commands["pkd-half"] == (
        "bertology compress m --task made-up --method patient:layers=6,which=first --seed 0 "
        "--to pkd-half"
    )
    assert commands[TEACHER] == "bertology finetune m made-up --seeds 0 --to teacher"


def test_each_row_is_judged_by_how_fast_it_is_and_sizes_are_counted() -> None:
    """How many weights a method leaves is arithmetic: it has no interval, and is no claim."""
    some = ("pkd-half", "q8bert", "mvp")
    result = made_up(n=100, seeds=3, methods=some, faster={"pkd-half": 1.9},
                     fewer={"pkd-half": 1.3, "mvp": 20.0})  # fmt: skip
    found, told = result.evidence(), claims_of(result)
    assert found["pkd_half_fewer"].low == found["pkd_half_fewer"].high
    assert found["pkd_half_fewer"].value == pytest.approx(1.3, rel=1e-3)
    assert told[f"{PAPER}pkd-half-faster"] == "holds"
    assert not [claim for claim in told if claim.endswith("-smaller")]


def test_each_published_figure_of_a_row_is_a_claim() -> None:
    published = [row.published for row in ROWS.values() if row.published]
    claims = [c for c in load_claims() if c.id.startswith(PAPER)]
    for word, given in (
        ("keeps", [p.kept for p in published]),
        ("faster", [p.faster for p in published]),
    ):
        own = [c for c in claims if c.id.endswith(f"-{word}") and "Table 1" in c.source.section]
        assert len(own) == len(list(filter(None, given)))
        assert len({c.rule.quantity for c in own}) == len(own)
        names = {row.quantity for row in ROWS.values()}
        assert {c.rule.quantity.rpartition("_")[0] for c in own} <= names


def test_a_teacher_that_helps_is_told_from_one_that_does_not() -> None:
    students = dict.fromkeys(("pkd-half", "soft-half", "minilm-half"), 0.8)
    helped = made_up(
        students | dict.fromkeys(ALONE_HALF, 0.7) | {TEACHER: 0.82}, n=1500, methods=tuple(students)
    )
    assert claims_of(helped)[f"{PAPER}teachers-help"] == "holds"
    assert "surely better than the same size" in helped.answer
    not_helped = made_up(0.75, n=300, methods=tuple(students))
    assert claims_of(not_helped)[f"{PAPER}teachers-help"] != "holds"


def test_the_best_of_rows_of_the_same_skill_is_not_praised_for_its_luck() -> None:
    """Picked and scored on the same runs, the best of four would seem better by luck."""
    gains = []
    for draw in range(6):
        some = PUBLISHED[:4]
        found = made_up(0.75, n=100, draw=draw, luck=0.02, constant=0.3, methods=some).evidence()[
            "best_small_kept"
        ]
        gains.append(found.value - 1)
    assert abs(np.mean(gains)) < 3 * np.std(gains) / np.sqrt(len(gains)) + 0.01


def test_a_constant_answer_keeps_nothing_for_sure() -> None:
    """It has 94 % of this teacher's score, and BERT-48 is asked for 85 %."""
    shares = {TEACHER: 0.64, "bert-48": 0.6}
    result = made_up(shares, constant=0.6, n=2000, seeds=5, luck=0.001, methods=("bert-48",))
    row = result.table().set_index("row").loc["bert-48"]
    assert row["kept_low"] > 0.88  # the table tells what it is
    for claim in ("bert-48-keeps", "small-loss", "teachers-help"):
        assert claims_of(result)[f"{PAPER}{claim}"] == "not-applicable"
    why = "not judged: bert-48 does not surely beat a constant answer"
    assert {result.reasons()[n] for n in ("bert_48_kept", "best_small_kept")} == {why}
    better = made_up(
        shares | {"bert-48": 0.63}, constant=0.55, n=2000, seeds=5, luck=0.001, methods=("bert-48",)
    )
    assert claims_of(better)[f"{PAPER}bert-48-keeps"] == "holds"


def test_students_that_learnt_nothing_judge_nothing() -> None:
    """After few updates all of them answered by chance, and "failed" what papers say of them."""
    some = ("pkd-half", "soft-half", "theseus-half")
    shares = {TEACHER: 0.8} | dict.fromkeys(some, 0.49)
    result = made_up(shares, n=400, seeds=4, methods=some)
    said = claims_of(result)
    for claim in ("pkd-half-keeps", "theseus-keeps", "small-loss", "teachers-help"):
        assert said[f"{PAPER}{claim}"] == "not-applicable"
    assert "pkd-half does not surely beat" in result.reasons()["pkd_half_over_soft_half"]
    # One that learnt, and keeps too little, fails: it was trained, and that is what it gives.
    poor = claims_of(made_up(shares | {"pkd-half": 0.65}, n=2000, seeds=5, methods=some))
    assert poor[f"{PAPER}pkd-half-keeps"] == poor[f"{PAPER}small-loss"] == "fails"
    assert poor[f"{PAPER}theseus-keeps"] == "not-applicable"
    # What was only rounded has lost what it had.
    broken = {TEACHER: 0.8, "gobo": 0.5}
    rounded = made_up(broken, n=400, seeds=4, methods=("gobo",), untrained=("gobo",))
    assert claims_of(rounded)[f"{PAPER}gobo-keeps"] == "fails"


def test_the_best_is_not_said_to_be_worse_than_any_row_may_be() -> None:
    some = ("pkd-half", "theseus-half", "soft-half")
    shares = {TEACHER: 0.8, "pkd-half": 0.776} | dict.fromkeys(some[1:], 0.77)
    result = made_up(shares, n=200, seeds=4, luck=0.03, methods=some, draw=1)
    rows, losses = (result.table(name).set_index("row") for name in ("rows", "losses"))
    found = result.evidence()
    assert found["best_small_kept"].high >= rows.loc[list(some), "kept_high"].max()
    gain = found["best_student_over_alone"]
    assert gain.high >= losses.loc[list(some), "over_alone_high"].max()


def test_seeds_of_one_half_are_scored_by_picks_of_the_other() -> None:
    """The row that is best by one seed is not what that seed, or its half, is scored with."""
    labels = np.zeros(40)
    said = {name: np.ones((4, 40)) for name in (TEACHER, "a", "b")}  # all wrong
    said["a"][[0, 2]], said["b"][[1, 3]] = 0.0, 0.0  # right by even seeds, and by odd ones
    rows = {name: Row(name, name) for name in said}
    runs = ScoredRuns(said, labels, 0.95)
    picked = CompressionScores(runs, rows, {}, "accuracy", 0.5).picked(["a", "b"])
    assert picked is not None
    assert picked.rows == (("b", "b"), ("a", "a"), ("b", "b"), ("a", "a"))


def test_sixteen_bits_alone_do_not_make_a_small_model() -> None:
    bits = {"bytes_per_weight": {"16-bit": 2.0}, "n": 60, "seeds": 2}
    only = made_up(methods=("16-bit",), **bits)
    assert only.table().set_index("row").loc["16-bit", "smaller"] > 1.5
    assert "best_small_kept" not in only.evidence()
    both = made_up(methods=("16-bit", "gobo"), **bits)
    assert both.facts["best_small"] == "gobo"


def test_numbers_on_other_scales_are_not_mixed() -> None:
    """Where halves of the examples pick different models, answers of both stand side by side."""
    some = ("pkd-half", "theseus-half", "soft-half", "minilm-half")
    found = [
        made_up({TEACHER: 0.8} | dict.fromkeys(some, 0.76), numbers=True, n=400, draw=draw,
                luck=0.001, methods=some).evidence()["best_small_kept"].value
        for draw in range(4)
    ]  # fmt: skip
    assert np.mean(found) == pytest.approx(0.95, abs=0.012)  # mixed as they are: below 0.93


def test_times_of_a_gpu_are_columns_where_there_are_any() -> None:
    on_both = made_up(n=60, seeds=2, methods=("pkd-half",), faster={"pkd-half": 2.0},
                      devices=("cpu", "NVIDIA H200"))  # fmt: skip
    row = on_both.table().set_index("row").loc["pkd-half"]
    for column in ("faster_1", "faster_32", "gpu_faster_1", "gpu_faster_32"):
        assert row[f"{column}_low"] < row[column] < row[f"{column}_high"]
        assert row[column] == pytest.approx(2, rel=0.1)
    assert [axes.get_xlabel() for axes in on_both.plot("pareto").axes] == [
        "megabytes on the disk", "time for one text, teacher = 1",
    ]  # fmt: skip
    on_cpu = made_up(n=60, seeds=2, methods=("pkd-half",))
    assert not [c for c in on_cpu.table() if c.startswith("gpu")]
    on_gpu = made_up(n=400, seeds=2, methods=("pkd-half",), devices=("NVIDIA H200",))
    assert on_gpu.table()["faster_1"].isna().all()
    assert "no times were measured on a CPU" in on_gpu.reasons()["pkd_half_faster"]


def test_without_times_nothing_is_said_of_speed() -> None:
    result = made_up(n=500, seeds=3, methods=("pkd-half", "gobo"), times=("none",))
    assert result.table()["faster_1"].isna().all()
    assert result.table("speeds").empty
    assert "no times were measured" in result.reasons()["gobo_faster"]
    assert "gobo_kept" in result.evidence()
    assert len(result.plot("pareto").axes) == 1
    assert "time for one text" not in result.drawings()[0].caption


def test_where_the_teacher_learnt_nothing_there_is_no_verdict() -> None:
    result = made_up(constant=0.8, n=100, methods=("pkd-half", "soft-half"))
    assert not result.evidence()
    assert "does not surely beat" in next(iter(result.reasons().values()))
    assert result.answer.startswith("Nothing is sure")


def test_one_seed_decides_nothing() -> None:
    result = made_up(seeds=1, n=100, methods=("pkd-half", "soft-half", "q8bert", "gobo"))
    decided = {c for c, outcome in claims_of(result).items() if outcome in ("holds", "fails")}
    exact = {f"{PAPER}precision-saves-memory"}
    assert not {c for c in decided - exact if not c.endswith("-faster")}  # no times by seeds
    assert result.plot().axes


def test_the_ratio_of_two_scores_holds_its_level() -> None:
    accuracy, rng, missed = find_metric("accuracy"), np.random.default_rng(0), 0
    labels = np.zeros(300)
    for _ in range(60):
        hard = rng.random(300)
        one, other = (
            np.stack(
                [
                    accuracy.statistics((hard + rng.random(300) > 2 * x).astype(float), labels)
                    for _ in range(3)
                ]
            )
            for x in (1 - np.sqrt(0.14), 1 - np.sqrt(0.1))
        )  # right 72 and 80 times in a hundred
        found = crossed_ratio(accuracy, one, other)
        missed += not found.low < 0.9 < found.high
    assert missed <= 9
    with pytest.raises(DataError, match="as many of one"):
        crossed_ratio(accuracy, one[:2], other)
    assert np.isnan(crossed_ratio(accuracy, one, other, floor=0.9).value)


# Rows ---------------------------------------------------------------------------------------------


def test_rows_fit_the_model_and_bring_their_baselines() -> None:
    study, corpus = CompressionTable(), made_tunings.corpus(0, 20)
    rows = study.rows(SHAPE, corpus)
    assert len([r for r in rows.values() if r.kind == "method"]) == len(ROWS) > 20
    assert rows["tinybert"].text == "tiny:layers=4,hidden=312,heads=12"
    assert rows["bert-48"].text == "small_vocabulary:hidden=48,heads=12"
    assert rows["pkd-half"].alone == ALONE_HALF
    # Theseus and others have a stage of three epochs before their own three.
    assert rows[ALONE_HALF[0]].text == "alone:layers=6,start=auto,which=first,epochs=6"
    assert rows["minilm-half"].alone == ("cut-layers-6", "random-layers-6")  # begins evenly
    assert rows["cut-layers-6"].text == "alone:layers=6,start=auto,epochs=6"
    assert not rows["bert-48"].alone
    assert "early-exit" not in study.rows(SHAPE, made_tunings.corpus(0, 20, made_tunings.LENGTH))
    assert study.parts(SHAPE, corpus)[-1] == TIMINGS
    free = read_rows(["soft_labels:layers=6", "temperature=3+int8", "layer_choice:which=1+3"])
    assert [row.methods for row in free] == [
        ("soft_labels:layers=6,temperature=3", "int8"), ("layer_choice:which=1+3",),
    ]  # fmt: skip
    assert read_rows(["pkd-half+int8"], SHAPE)[0].methods == (
        "patient:layers=6,which=first",
        "int8",
    )
    enough = CompressionTable.enough_for(["pkd_half_over_soft_half"])
    assert enough == {"methods": ("pkd-half", "soft-half"), "alone": ("none",)}
    assert CompressionTable.enough_for(["best_small_kept"]) == {}
    assert free[0].name == "soft-labels-layers-6-temperature-3-int8"


def test_students_of_a_small_model_are_beside_that_model_without_a_teacher(tmp_path: Path) -> None:
    small = tmp_path / "plain-4x8"
    made_compressions.masked_lm(small, hidden=8, layers=1)
    texts = (f"soft_labels:start={small}", f"patient:start={small},epochs=5", "soft-half")
    study, corpus = CompressionTable(methods=texts, epochs=3), made_tunings.corpus(0, 20)
    rows = study.rows(SHAPE, corpus)
    [soft, patient] = [row for row in rows.values() if str(small) in row.text][:2]
    # As many baselines as all others have: they are compared start by start.
    assert soft.alone == patient.alone == ("alone-plain-4x8", "alone-plain-4x8")
    alone = rows["alone-plain-4x8"]
    assert (alone.kind, alone.text) == ("alone", f"alone:start={small},epochs=5")
    assert [row.name for row in rows.values() if row.kind == "alone"] == [
        "alone-plain-4x8", *ALONE_HALF,
    ]  # fmt: skip
    assert (
        not CompressionTable(methods=texts[:1], alone=("none",))
        .rows(SHAPE, corpus)[soft.name]
        .alone
    )
    # The table is of this model, not of what lies in its folder later.
    before = named_files(read_rows(texts))
    assert len(before) == 2
    made_compressions.masked_lm(small, hidden=12, layers=1)
    assert named_files(read_rows(texts)) != before


@pytest.mark.parametrize("methods", [(), ("pkd-half", "pkd-half"), ("low_rank:share={some}",)])
def test_rows_that_are_none_are_refused(methods: tuple[str, ...]) -> None:
    with pytest.raises(ParameterError, match=r"pkd-half|braces"):
        CompressionTable(methods=methods).rows(SHAPE, made_tunings.corpus(0, 20))
    with pytest.raises(ParameterError, match="cut"):
        CompressionTable(alone=("layers",))
    with pytest.raises(ParameterError, match="cpu, gpu"):
        CompressionTable(times=("cpu", "none"))
    with pytest.raises(ParameterError, match="different names"):
        CompressionTable(small=("a/x", "b/x"))
    made = CompressionTable(small=("a/model", "b/model")).rows(SHAPE, made_tunings.corpus(0, 20))
    assert {"small-a-model", "small-b-model"} <= set(made)


def test_what_nothing_beats() -> None:
    assert unbeaten([1, 2, 3, 2], [5, 5, 9, 7]).tolist() == [True, False, True, True]
    with pytest.raises(ParameterError, match="names"):
        trade_offs([], ([1], [1], [1]), ["a"], ["b"], ylabel="y", marked=0, title="t")


# The real thing, tiny -----------------------------------------------------------------------------


def encoder() -> Encoder:
    return Encoder(tiny.model("bert"), tiny.tokenizer(list(WORDS)), name="tiny")


def written(folder: Path) -> Corpus:
    rng = np.random.default_rng(0)
    folder.mkdir()
    for split, size in (("train", 64), ("validation", 20)):
        rows = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(size)]
        lines = [f"{text},{'yes' if 'cat' in text else 'no'}" for text in rows]
        (folder / f"{split}.csv").write_text("\n".join(["text,label", *lines, ""]))
    return load_corpus(str(folder))


GIVEN: dict[str, Any] = {
    "methods": ("16-bit", "soft_labels:layers=1+int8", "pkd-half"), "alone": ("cut",),
    "epochs": 2, "learning_rate": 3e-3, "batch_size": 16, "rounds": 3, "threads": 1,
}  # fmt: skip


def test_the_whole_study_runs_and_a_kill_changes_no_number(tmp_path: Path) -> None:
    corpus, trained = written(tmp_path / "task"), tmp_path / "store" / "trained"
    result = bt.run(
        "compression-table", encoder(), task=corpus, store=str(tmp_path / "store"), seeds=2, **GIVEN
    )
    assert isinstance(result, CompressionTableResult)
    rows = result.table().set_index("row")
    assert list(rows.index) == [
        TEACHER, "16-bit", "soft-labels-layers-1-int8", "pkd-half", "cut-layers-1-first",
    ]  # fmt: skip
    assert rows.loc["16-bit", "kept"] == 1  # nothing is lost by rounding to 16 bits
    assert 1.7 < rows.loc["16-bit", "smaller"] <= 2
    assert rows.loc["pkd-half", "fewer"] == rows.loc["cut-layers-1-first", "fewer"] > 1
    assert (rows["faster_1"] > 0).all()
    assert result.table("losses").set_index("row").loc["16-bit", "changed"] == 0
    runs = result.table("runs").set_index(["row", "seed"])["accuracy"]
    assert len(runs) == 10
    assert len(list((trained / "models").glob("*/model.safetensors"))) == 2  # a teacher each
    kept = {path.parents[1].name for path in (trained / "compressed").glob("*/*/*.safetensors")}
    assert len(kept) == 4  # those of the first seed, for the times
    study = CompressionTable(seeds=2, times=("none",), **GIVEN)
    assert TIMINGS not in study.parts(encoder().shape, corpus)
    with pytest.raises(KilledError):
        study.measure(encoder(), corpus, "pkd-half-seed-1", killed(tmp_path / "other"))
    assert list((tmp_path / "other").rglob("state.safetensors"))
    again = study.measure(encoder(), corpus, "pkd-half-seed-1", Context(trained=tmp_path / "other"))
    score = float((again["predictions"][0] == again["labels"]).mean())
    assert score == runs["pkd-half", 1]


def test_what_is_told_is_kept_and_a_row_that_diverges_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, store = written(tmp_path / "task"), str(tmp_path / "store")
    given = {**GIVEN, "epochs": 1, "alone": ("none",), "times": ("cpu",)}
    given["methods"] = (
        "soft_labels:layers=1,rate=1e30", "soft_labels:layers=1", "soft_labels:layers=1+int8",
    )  # fmt: skip
    trained, train_on = list[str](), Work.train_on

    def counted(work: Work, *more: Any, **named: Any) -> Any:
        trained.append(f"{work.seed} {work.number}")
        return train_on(work, *more, **named)

    monkeypatch.setattr(Work, "train_on", counted)
    result = bt.run("compression-table", encoder(), task=corpus, store=store, seeds=2, **given)
    # One that diverges, and one that the row with 8 bits goes on with.
    assert sorted(trained) == ["0 soft_labels"] * 2 + ["1 soft_labels"] * 2
    rows = result.table().set_index("row")
    lost, small = "soft-labels-layers-1-rate-1e30", "soft-labels-layers-1-int8"
    assert rows.index.tolist() == [TEACHER, lost, "soft-labels-layers-1", small]
    assert rows.loc[lost, ["smaller", "fewer", "faster_1"]].isna().all()
    assert result.table("losses").set_index("row")["failed"][lost] == 2
    assert result.facts["best_small"] != lost
    assert (rows.loc[small, ["smaller", "fewer", "faster_1"]] > 0).all()

    again = bt.run(
        "compression-table", encoder(), task=corpus, store=store, seeds=2, **{**given, "rounds": 4}
    )
    assert len(trained) == 4
    assert again.table()["score"].equals(result.table()["score"])
    given["methods"] = ("16-bit", *given["methods"])
    bt.run("compression-table", encoder(), task=corpus, store=store, seeds=3, **given)
    assert sorted(trained)[4:] == ["2 soft_labels"] * 2


def test_a_teacher_that_diverges_ends_the_study_and_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="Row 'teacher', seed 0: Training diverged"):
        bt.run(
            "compression-table", encoder(), task=written(tmp_path / "task"), methods=("16-bit",),
            epochs=1, learning_rate=1e30, seeds=2, store=str(tmp_path / "store"),
        )  # fmt: skip


def killed(folder: Path) -> Context:
    told = 0

    def advance(steps: int) -> None:
        nonlocal told
        told += steps
        if told > 40:
            raise KilledError

    return Context(advance=advance, trained=folder)


def test_what_does_not_fit_is_refused_before_any_work(tmp_path: Path) -> None:
    corpus = written(tmp_path / "task")
    with pytest.raises(BertologyError, match="no_such"):
        CompressionTable(methods=("no_such",)).check(encoder(), corpus)
    with pytest.raises(BertologyError, match="int8"):
        CompressionTable(methods=("int8+pkd-quarter",)).check(encoder(), corpus)
    with pytest.raises(ParameterError, match="not on a GPU"):
        CompressionTable(times=("gpu",)).check(encoder(), corpus)
    made_compressions.masked_lm(tmp_path / "other", words=WORDS[::-1])
    with pytest.raises(BertologyError, match="cuts texts into other tokens"):
        CompressionTable(methods=(f"tiny:start={tmp_path / 'other'}",)).check(encoder(), corpus)
    with pytest.raises(BertologyError, match="nowhere"):
        CompressionTable(small=("nowhere",)).ingredients(corpus)
    with pytest.raises(BertologyError, match="no model without a teacher"):
        made_compressions.applied("alone:layers=1")  # of a model whose pre-trained one is not known
