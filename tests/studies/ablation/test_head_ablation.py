"""Head ablation finds what was planted, finds nothing where nothing is, and agrees with a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import planted
import planted_links
import tiny
from bertology.cli.results import show_result
from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.interventions import MeanHead, UniformAttention, ZeroHead
from bertology.results.comparison import beats_constant_answer
from bertology.results.number_text import number_text
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.studies.ablation.head_ablation import HeadAblation, HeadAblationResult
from result_conformance import ResultConformance, told
from toy.shipping import Shipped


def encoder(**how: Any) -> Encoder:
    return Encoder(planted.model(**how), planted.tokenizer(), head="classification", name="planted")


def ablate(enc: Encoder, store: Path, size: int = 300, **parameters: Any) -> HeadAblationResult:
    parameters.setdefault("resamples", 500)
    found = bt.run(
        "head-ablation", enc, task=planted.corpus(size), store=str(store), progress=False,
        **parameters,
    )  # fmt: skip
    assert isinstance(found, HeadAblationResult)
    return found


def sure(result: HeadAblationResult, column: str = "sure") -> list[tuple[int, int]]:
    table = result.table("heads")
    rows = table[table[column]]
    return list(zip(rows["layer"], rows["head"], strict=True))


class TestResult(ResultConformance):
    measures = frozenset({
        "ablation-effect", "ablation-loss", "ablation-mean-loss", "first-order-importance",
        "layer-ablation-effect", "layer-ablation-loss",
    })  # fmt: skip

    @staticmethod
    def make() -> Result:
        study = HeadAblation(resamples=100, sets=("0.1+1.2",))
        found: Result = planted_links.ask(study, encoder(), planted.corpus(90))
        return found

    def test_what_was_planted_is_what_the_measures_say(self, result: Result) -> None:
        effect = result.measure("ablation-effect")
        assert effect.unit == "points of accuracy"
        assert effect.sure is not None
        assert effect.sure[planted.CARRIER]
        assert effect.values[planted.CARRIER] == effect.values.min() < -10
        loss = result.measure("ablation-loss")
        assert loss.sure is not None
        assert loss.sure[planted.CARRIER]
        assert loss.values[planted.CARRIER] == loss.values.max() > 50

    def test_tables_show_the_surest_rows_first_with_bounds_and_tests(self, result: Result) -> None:
        shown = result.shown("heads")
        assert (shown["layer"].iloc[0], shown["head"].iloc[0]) == planted.CARRIER
        assert list(shown.columns[:8]) == [
            "layer", "head", "difference", "difference_low", "difference_high", "p_adjusted",
            "sure", "loss_balance",
        ]  # fmt: skip
        assert result.order_of("heads") == "sure ones before others, largest difference first"
        assert len(shown) == len(result.table("heads"))

    def test_bounds_and_tests_agree(self, result: Result) -> None:
        for name in ("heads", "layers", "sets"):
            table = result.table(name)
            for low, high, sure in (
                ("simultaneous_low", "simultaneous_high", "sure"),
                ("loss_balance_low", "loss_balance_high", "loss_sure"),
            ):
                outside = (table[low] > 0) | (table[high] < 0)
                assert (outside == table[sure]).all()

    def test_a_quantity_is_not_put_together_from_three_heads(self, result: Result) -> None:
        """The largest loss of any head: the planted one is the largest in every way."""
        found, table = result.evidence()["worst_head_loss"], result.table("heads")
        row = table[(table["layer"] == 0) & (table["head"] == 2)].iloc[0]
        bounds = (row["difference"], row["simultaneous_high"], row["alone_low"])
        assert (found.value, found.low, found.high) == tuple(-b for b in bounds)


@pytest.mark.parametrize("method", ["uniform", "zero", "mean"])
def test_finds_exactly_the_planted_head(tmp_path: Path, method: str) -> None:
    result = ablate(encoder(), tmp_path, method=method)
    assert result.arrays.attrs["intact"] == 1.0
    assert sure(result) == [planted.CARRIER]
    others = result.table("heads").query("layer != 0 or head != 2")
    assert (others["difference"] == 0).all()
    layers = result.table("layers")
    assert list(layers["sure"]) == [True, False]
    verdicts = {v.claim.id: told(v) for v in result.verdicts()}
    assert verdicts["dark-secrets.disabling-some-heads-hurts"] is Outcome.HOLDS
    assert verdicts["dark-secrets.disabling-some-heads-helps"] is Outcome.INCONCLUSIVE
    assert verdicts["dark-secrets.disabling-some-heads-raises-the-loss"] is Outcome.HOLDS
    assert verdicts["dark-secrets.disabling-a-layer-raises-the-loss"] is Outcome.HOLDS
    assert sure(result, "loss_sure") == [planted.CARRIER]
    # Rounding is no change of the loss, however regular it is.
    assert (others["loss_balance"] == 0).all()


def test_the_loss_shows_what_no_answer_shows(tmp_path: Path) -> None:
    """A quiet spoiler flips nothing, and makes answers less certain where fillers contradict."""
    result = ablate(encoder(spoil=0.2), tmp_path, method="zero")
    table = result.table("heads").set_index(["layer", "head"])
    assert table.loc[planted.SPOILER, "difference"] == 0
    assert not table.loc[planted.SPOILER, "sure"]
    assert abs(table.loc[planted.SPOILER, "loss_difference"]) > 0
    assert set(sure(result, "loss_sure")) <= {planted.CARRIER, planted.SPOILER}


def test_nothing_matters_in_a_model_that_answers_by_its_words_alone(tmp_path: Path) -> None:
    """No head moves anything: nothing is sure, no verdict is false, and what is shown is small."""
    model = planted.model()
    corpus = planted.corpus(800)
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.zero_()
    enc = Encoder(model, planted.tokenizer(), head="classification", name="still")
    study = HeadAblation(resamples=200, first_order=False)
    answers = planted_links.ask(study, enc, corpus)
    for name in ("heads", "layers"):
        assert not answers.table(name)[["sure", "loss_sure"]].to_numpy().any()
        assert (answers.table(name)["p_adjusted"] == 1).all()


def test_finds_a_head_that_spoils(tmp_path: Path) -> None:
    result = ablate(encoder(spoil=2.0), tmp_path, method="zero", size=400)
    assert 0.5 < result.arrays.attrs["intact"] < 0.95
    table = result.table("heads").set_index(["layer", "head"])
    assert table.loc[planted.SPOILER, "difference"] == 1 - result.arrays.attrs["intact"]
    assert set(sure(result)) == {planted.CARRIER, planted.SPOILER}
    verdicts = {v.claim.id: told(v) for v in result.verdicts()}
    assert verdicts["dark-secrets.disabling-some-heads-helps"] is Outcome.HOLDS
    assert verdicts["dark-secrets.disabling-a-layer-helps"] is Outcome.HOLDS


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_claim_holds_for_a_random_model(tmp_path: Path, seed: int) -> None:
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=11, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=40, initializer_range=0.4,
    )  # fmt: skip
    model = hf.BertForSequenceClassification(config)
    enc = Encoder(model, planted.tokenizer(), head="classification", name="random")
    result = ablate(enc, tmp_path, resamples=500)
    assert Outcome.HOLDS not in {told(v) for v in result.verdicts()}


def test_scores_equal_a_plain_loop(tmp_path: Path) -> None:
    enc, corpus = encoder(spoil=2.0), planted.corpus(90)
    labels = np.asarray(corpus.labels)
    means = enc.head_means(corpus.texts)
    ways = {
        "uniform": lambda heads: UniformAttention(heads),
        "zero": lambda heads: ZeroHead(heads),
        "mean": lambda heads: MeanHead(heads, means),
    }
    for method, disable in ways.items():
        result = ablate(enc, tmp_path, 90, method=method, sets=("0.2+1.1",))
        for (layer, head), row in result.table("heads").set_index(["layer", "head"]).iterrows():
            logits = enc.run(corpus.texts, do=disable([(layer, head)])).logits
            right = (logits.argmax(-1).numpy() == labels).mean()
            assert row["score"] == pytest.approx(right)
        both = enc.run(corpus.texts, do=disable([(0, 2), (1, 1)])).logits.argmax(-1).numpy()
        assert result.table("sets")["score"][0] == pytest.approx((both == labels).mean())


def test_first_order_effect_is_exact_for_a_small_step() -> None:
    from bertology.model.interventions import GateHead
    from bertology.model.sweeps.gate_gradients import first_order_effects, losses

    enc, corpus = encoder(spoil=2.0), planted.corpus(12)
    enc.model.double()
    labels = torch.tensor(corpus.labels)
    for method in ("uniform", "zero"):
        batch = enc.encode(corpus.texts)
        slopes = first_order_effects(enc, batch, labels, method=method)
        xi = torch.ones(2, 4, dtype=torch.float64)
        before = losses(enc.run(batch, do=GateHead(xi, method)).logits, labels)
        xi[1, 1] -= 1e-4
        after = losses(enc.run(batch, do=GateHead(xi, method)).logits, labels)
        torch.testing.assert_close(slopes[:, 1, 1].double(), (after - before) / 1e-4,
                                   rtol=1e-2, atol=1e-5)  # fmt: skip


def test_regression_is_scored_by_correlation(tmp_path: Path) -> None:
    from dataclasses import replace

    from bertology.data.corpus import Task

    torch.manual_seed(0)
    model = planted.model()
    model.classifier = torch.nn.Linear(16, 1)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.weight[0, 0] = 2.0
    model.config.num_labels = model.num_labels = 1
    corpus = replace(
        planted.corpus(200), task=Task("planted", "regression", (), ("pearson", "spearman"))
    )
    enc = Encoder(model, planted.tokenizer(), head="classification")
    result = bt.run("head-ablation", enc, task=corpus, store=str(tmp_path), progress=False)
    assert result.arrays.attrs["metric"] == "pearson"
    assert result.arrays.attrs["intact"] > 0.99
    assert sure(result) == [planted.CARRIER]


def test_classes_are_matched_by_name(tmp_path: Path) -> None:
    """A model that lists the corpus's classes the other way round is not scored upside down."""
    model = planted.model()
    with torch.no_grad():
        model.classifier.weight.copy_(model.classifier.weight.flip(0))
    model.config.id2label = {0: "Good", 1: "BAD"}
    turned = Encoder(model, planted.tokenizer(), head="classification")
    result = ablate(turned, tmp_path)
    assert result.arrays.attrs["intact"] == 1.0
    assert sure(result) == [planted.CARRIER]
    straight = ablate(encoder(), tmp_path).table("heads")
    np.testing.assert_allclose(
        result.table("heads")["first_order"], straight["first_order"], atol=1e-5
    )


def test_layers_are_drawn_with_paired_intervals_and_sure_ones_filled(tmp_path: Path) -> None:
    result = ablate(encoder(), tmp_path)
    table = result.table("layers")
    axes = result.plot("layers").axes[0]
    (lines,) = axes.collections
    drawn = np.array([[y for _, y in path.vertices] for path in lines.get_paths()])
    wanted = 100 * table[["simultaneous_low", "simultaneous_high"]].to_numpy()
    np.testing.assert_allclose(drawn, wanted)
    white = [patch.get_facecolor()[:3] == (1, 1, 1) for patch in axes.patches]
    assert white == [not s for s in table["sure"]] == [False, True]
    assert axes.get_ylabel() == "points of accuracy"  # a change; a score is in %


@pytest.mark.parametrize("width", [72, 80, 100])
def test_corrected_columns_are_never_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = ablate(encoder(), tmp_path)
    show_result(result, rows=2)
    said = capsys.readouterr().out
    heads = said[said.index("heads (8 rows") : said.index("layers (2 rows")]
    for column in ("difference", "sure", "loss_balance", "loss_sure"):
        assert column in heads.partition("──")[0].split(), heads
    assert "score" in heads.partition("and the columns")[2]
    best = result.shown("heads").iloc[0]
    assert number_text(100 * best["difference_low"]) in heads  # the interval for all heads together


def named_model(folder: Path) -> Path:
    """The planted model as a folder, with names for its classes."""
    model = planted.model()
    model.config.id2label, model.config.label2id = (
        {0: "negative", 1: "positive"},
        {"negative": 0, "positive": 1},
    )
    model.save_pretrained(folder / "model")
    planted.tokenizer().save_pretrained(folder / "model")
    return folder / "model"


def own_file(folder: Path, good: str = "good", bad: str = "poor") -> Path:
    """The planted corpus as a CSV whose labels have other names than the model's."""
    rows = [f'"{e.text}",{good if e.label else bad}' for e in planted.corpus(120)]
    (folder / "own.csv").write_text("\n".join(["text,label", *rows]))
    return folder / "own.csv"


def test_labels_of_a_file_are_not_scored_upside_down(tmp_path: Path) -> None:
    """`good` and `poor` came as 0 and 1, as `negative` and `positive` do: accuracy 0 for 1."""
    asked: dict[str, Any] = {
        "store": str(tmp_path / "r"), "progress": False, "resamples": 100, "layers": False,
    }  # fmt: skip
    model, data = str(named_model(tmp_path)), str(own_file(tmp_path))
    with pytest.raises(CapabilityError, match="Which label is which") as refused:
        bt.run("head-ablation", model, task=data, **asked)
    assert "--labels good=positive,poor=negative" in str(refused.value.hint)
    right = {"good": "positive", "poor": "negative"}
    result = bt.run("head-ablation", model, task=data, labels=right, **asked)
    assert result.facts["intact"] == 1.0
    assert "by name): good = positive, poor = negative" in result.summary()
    turned = {"good": "negative", "poor": "positive"}
    wrong = bt.run("head-ablation", model, task=data, labels=turned, engine=Shipped(), **asked)
    assert wrong.facts["intact"] == 0.0
    assert wrong.identity != result.identity
    assert "surely worse than always giving the same answer" in wrong.summary()
    assert "surely worse" not in result.summary()


def test_labels_of_a_loaded_corpus_get_other_names(tmp_path: Path) -> None:
    corpus = bt.load_corpus(own_file(tmp_path), labels={"good": "positive"})
    assert corpus.task is not None
    assert corpus.task.labels == ("positive", "poor")
    assert bt.load_corpus(**corpus.origin).fingerprint == corpus.fingerprint
    with pytest.raises(UnknownNameError, match="label of own"):
        corpus.relabelled({"god": "x"})


def test_says_why_nothing_was_judged(tmp_path: Path) -> None:
    model = planted.model()
    with torch.no_grad():
        model.classifier.weight.zero_()
    result = ablate(Encoder(model, planted.tokenizer(), head="classification"), tmp_path, 40)
    assert "does not surely beat a constant answer" in str(result.verdicts()[0])
    assert result.headline().startswith("Intact accuracy (%): ")
    assert result.answer.startswith("Nothing is sure: the intact model, with accuracy (%) ")


def test_a_constant_answer_is_worth_nothing_by_matthews() -> None:
    """Nine in ten are alike, as in CoLA: accuracy cannot tell a fair model from a constant one."""
    labels = np.repeat([1, 0], [360, 40])
    fair = labels.copy()
    fair[:40], fair[-20:] = 0, 1
    assert not beats_constant_answer(fair, labels, classes=True)
    assert beats_constant_answer(fair, labels, classes=True, metric="matthews")
    chance = np.random.default_rng(0).permutation(fair)
    for constant in (np.ones_like(labels), chance):
        assert not beats_constant_answer(constant, labels, classes=True, metric="matthews")


def test_among_equally_frequent_answers_none_is_preferred() -> None:
    labels = np.repeat([0, 1], 30)
    given = np.where(np.arange(60) % 10 < 3, 1 - labels, labels)  # 70 % right
    assert beats_constant_answer(given, labels, classes=True)
    assert beats_constant_answer(1 - given, 1 - labels, classes=True)
    assert not beats_constant_answer(np.zeros(60), labels, classes=True)


def test_a_pruned_model_is_refused_before_any_work(tmp_path: Path) -> None:
    pruned = Encoder(
        bt.prune_heads(planted.model(), [(0, 0)]), planted.tokenizer(), head="classification"
    )
    with pytest.raises(CapabilityError, match="were pruned"):
        ablate(pruned, tmp_path, 20)


def test_batch_size_changes_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeadAblation, "block", 32)
    enc, corpus = encoder(spoil=2.0), planted.corpus(70)
    from bertology.studies.study import Context

    study = HeadAblation()
    parts = study.parts(enc.shape, corpus)
    assert parts == [f"examples-{a:06d}-{b:06d}" for a, b in ((0, 32), (32, 64), (64, 70))]
    small, large = (
        study.measure(enc, corpus, parts[0], Context(batch_tokens=n)) for n in (40, 10_000)
    )
    np.testing.assert_allclose(small["logits"], large["logits"], atol=1e-5)
    np.testing.assert_allclose(small["first_order"], large["first_order"], rtol=1e-4, atol=1e-5)


def test_refuses_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="'method' parameter of HeadAblation"):
        HeadAblation(method="loudly")
    with pytest.raises(ParameterError, match=r"heads such as 3\.5"):
        HeadAblation(sets=("three",))
    with pytest.raises(UnknownNameError, match="metric"):
        HeadAblation(metric="acuracy")
    with pytest.raises(ParameterError, match="nothing else"):
        HeadAblation(heads=False, layers=False)
    with pytest.raises(ParameterError, match="name heads of a model with 2 layers × 4 heads"):
        ablate(encoder(), tmp_path, 20, sets=("9.0",))
    base = Encoder(tiny.model("bert"), planted.tokenizer())
    with pytest.raises(CapabilityError, match="classification"):
        ablate(base, tmp_path, 20)
