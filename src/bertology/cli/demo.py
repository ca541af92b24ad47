"""`bertology demo`: what the bundled model knows and does, offline, in two to three minutes.

Its sentences are made from results, and say nothing that they do not show. A statement is called
sure only where a test that is corrected for all heads, layers or relations says so. Where nothing
is sure, the sentence says that.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.cli.command import command
from bertology.cli.console import say, say_next, show_table
from bertology.parameters import flag, parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.results.measures import Measure
    from bertology.results.result import Result
    from bertology.results.verdicts import Verdict
    from bertology.run.progress import Progress
    from bertology.stats import Estimate
    from bertology.train.history import Step
    from bertology.train.tuning import FinetunePlan

    Bools = NDArray[np.bool_]

_STUDY = "head-ablation"
_SENTENCES = 200  # in which heads are watched
_PAIRS = 100  # of agreement
_RANKED_ON = 200  # training pairs by which heads are ranked
_TOGETHER = 8  # heads that are disabled at once
_BLANK = "She opened the {mask} and went in."
_PAIR = ("The keys to the cabinet are here.", "The keys to the cabinet is here.")
RELATIONS = {
    "verb-subject": ("verb", "subject"),
    "verb-object": ("verb", "object"),
}
"""Relations that are looked for, and what their links lead from and to."""
_SHOWN = 5  # heads or layers that are named, the strongest first


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The options of `demo`."""

    to: Path = parameter(
        Path("bertology-demo"), "The folder for the model, the results and the figures.",
        metavar="FOLDER",
    )  # fmt: skip
    fresh: bool = flag("Fine-tune and measure again, even if it was done before.")


@command(
    "demo",
    [DemoOptions],
    examples=["bertology demo", "bertology demo --to /tmp/demo --fresh"],
)
def demo(options: DemoOptions) -> None:
    """See what the bundled BERT knows, what its heads do, and what is lost without them.

    Needs no network and no data: the model is bundled, and the bundled grammar makes the
    sentences. Takes two to three minutes on two cores. If you run it again, it shows the same
    results without computing them again.
    """
    from bertology.train.checkpoint import check_folder

    to, fresh = options.to, options.fresh
    check_folder(to / "model")  # before any work
    plan = demo_plan()
    _show_knowledge(plan.start)
    looked = _look_at_heads(plan, to, fresh=fresh)
    validation = plan.validation()
    say(f"The task: {plan.corpus}", style="bold")
    labels = validation.task.labels if validation.task else ()
    for example in validation[:4]:
        say(f"  {example.text} → {example.text_b}  ({labels[int(example.get('label'))]})")
    _ready_model(to / "model", plan, validation, fresh=fresh)
    result = _ablate(plan, to, validation, fresh=fresh)
    _show_losses(result)
    results = [*looked, result]
    verdicts, undecided = decided(results)
    if verdicts:
        show_table(
            ("verdict", "statement", "measured"),
            ((v.outcome.in_words, v.claim.statement, v.measured) for v in verdicts),
            title="Claims of the literature, judged on this model",
        )
    if undecided:
        store = shlex.quote(str(to / "results"))
        say(
            f"{undecided} further claims cannot be decided with so few examples; "
            f"`bertology show ID --store {store}` says what would decide them."
        )
    say()
    _show_files(result, to, plan)


def demo_plan() -> FinetunePlan:
    """Few enough examples for a short demo, and enough to see differences between heads."""
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.tuning import FinetunePlan

    return FinetunePlan(
        corpus="grammar-entailment",
        examples=3000,
        unseen=160,
        # Small batches, since there is one epoch only; at twice this rate some runs learn nothing.
        settings=FinetuneSettings(epochs=1, batch_size=16, learning_rate=1.5e-4),
    )


def _show_knowledge(name: str) -> None:
    """What the model knows before fine-tuning: a masked word, and a minimal pair."""
    from bertology.data.loading import load_corpus
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.cloze import cloze
    from bertology.model.masked_lm.scoring import compare_pairs

    encoder = Encoder.load(name, head="mlm", device="cpu")
    say(f"The model: {name}, {encoder.shape}", style="bold")
    (filled,) = cloze(encoder, _BLANK, top_k=3)
    words = ", ".join(f"{p.word} {100 * p.probability:.0f} %" for p in filled.predictions)
    say(f"  {_BLANK.format(mask='____')}  {words}")
    good, bad = _PAIR
    (difference,) = compare_pairs(encoder, [good], [bad])
    say(f"  {good}  {_odds(difference)} than")
    say(f"  {bad}")
    pairs = load_corpus("grammar-agreement", limit=_PAIRS)
    found = compare_pairs(encoder, [e.text for e in pairs], [str(e.get("contrast")) for e in pairs])
    say(f"  {preferred([float(d) for d in found])}")
    say()


def _odds(difference: float) -> str:
    """A difference of log-likelihoods as text."""
    times = math.exp(abs(difference))
    return f"{times:,.0f} times {'likelier' if difference > 0 else 'less likely'}"


def _ready_model(folder: Path, plan: FinetunePlan, validation: Corpus, *, fresh: bool) -> None:
    """Fine-tune the model, or reuse the one that is there."""
    from bertology.run.progress import choose_progress
    from bertology.train.tuning import find_made, make

    record = None if fresh else find_made(folder, plan, validation)
    if record is None:
        say(f"  Fine-tuning {plan.start} on {plan.examples:,} such pairs …")
        bar = choose_progress(None)
        try:
            record = make(folder, plan, validation, progress=_telling(bar, plan))
        finally:
            bar.stop()
    else:
        say(
            f"  Reusing the model that was fine-tuned on {record['created'][:10]} "
            "(--fresh fine-tunes again)."
        )
    metric, score = next(iter(record["scores"].items()))
    say(
        f"  {metric.capitalize()} on {len(validation)} other pairs: {100 * score:.1f} %. "
        f"Always predicting the most frequent label: {100 * record['baseline'][metric]:.1f} %."
    )
    say()


def _telling(bar: Progress, plan: FinetunePlan) -> Callable[[Step], None]:
    """Moves the bar with each step and prints a line for each epoch."""

    def tell(step: Step) -> None:
        if step.done == 1:
            bar.start("training", step.total)
        bar.advance(1)
        if step.epoch is not None:
            metric, score = next(iter(step.epoch.scores.items()))
            say(
                f"  epoch {step.epoch.number} of {plan.settings.epochs}: "
                f"loss {step.epoch.loss:.3f}, {metric} {100 * score:.1f} %"
            )

    return tell


def _look_at_heads(plan: FinetunePlan, to: Path, *, fresh: bool) -> list[Result]:
    """What the pre-trained model's heads attend to: linked words, and [SEP]."""
    from bertology.data.loading import load_corpus
    from bertology.model.encoder import Encoder
    from bertology.run.api import run

    corpus = load_corpus("grammar", limit=_SENTENCES)
    say(f"What its heads attend to, in {len(corpus)} sentences", style="bold")
    encoder, store = Encoder.load(plan.start, device="cpu"), str(to / "results")
    links = run(
        "syntax-heads", encoder, corpus=corpus, store=store, force=fresh,
        relations=tuple(RELATIONS),
    )  # fmt: skip
    classes = run("token-classes", encoder, corpus=corpus, store=store, force=fresh)
    for line in (*links_told(links), *sink_told(classes)):
        say(f"  {line}")
    say("  (Heads are layer.head, from 0. Intervals hold for all heads or layers together.)")
    say()
    return [links, classes]


def _ablate(plan: FinetunePlan, to: Path, validation: Corpus, *, fresh: bool) -> Result:
    """Disable every head, every layer, and two sets of heads."""
    from bertology.model.encoder import Encoder
    from bertology.run.api import run

    # Always on the CPU, so that the demo gives the same numbers everywhere.
    encoder = Encoder.load(str(to / "model"), head="classification", device="cpu")
    sets = _ranked_sets(encoder, plan.train().take(_RANKED_ON))
    return run(
        _STUDY, encoder, task=validation, store=str(to / "results"), force=fresh, sets=sets,
        first_order=False,
    )  # fmt: skip


def _ranked_sets(encoder: Encoder, corpus: Corpus) -> tuple[str, str]:
    """The heads whose loss matters most and least on other pairs than those they are tested on."""
    import numpy as np

    from bertology.model.sweeps.gate_gradients import first_order_over
    from bertology.model.sweeps.post_norm import Disable

    rises = first_order_over(encoder, corpus.texts, corpus.labels, disable=Disable("uniform"))
    grid = rises.mean(axis=0)
    most, least = np.argsort(-grid, axis=None), np.argsort(np.abs(grid), axis=None)
    count = min(_TOGETHER, grid.size // 4)
    worst, rest = (
        sorted(divmod(int(i), grid.shape[1]) for i in chosen[:count]) for chosen in (most, least)
    )
    return _set_name(worst), _set_name(rest)


def _set_name(heads: Sequence[tuple[int, int]]) -> str:
    return "+".join(f"{layer}.{head}" for layer, head in heads)


def _show_losses(result: Result) -> None:
    facts = result.arrays.attrs
    say("What is lost without layers and heads", style="bold")
    say(
        f"  With all heads: {100 * float(facts['intact']):.1f} % {facts['metric']}. "
        "A disabled head attends to all tokens equally."
    )
    for one in ("layer", "head"):
        for line in lost_told(result, one):
            say(f"  {line}")
    worst, rest = result.tables["sets"]["set"].tolist()
    count = worst.count("+") + 1
    words = {
        worst: f"the {count} heads that matter most by gradients on other pairs ({worst}) together",
        rest: f"the {count} heads that matter least ({rest}) together",
    }
    for line in sets_told(result, words):
        say(f"  {line}")
    say("  (Intervals hold for all heads, for all layers, and for both sets, together.)")
    say()


def _show_files(result: Result, to: Path, plan: FinetunePlan) -> None:
    from bertology.drafts import write_whole
    from bertology.errors import StoreError
    from bertology.results.rendering import render

    say("The figures", style="bold")
    for name in ("heads", "heads-loss", "layers"):
        for kind in ("png", "svg"):
            path = to / f"{name}.{kind}"
            try:
                write_whole(path, render(result.plot(name), kind))
            except OSError as error:
                raise StoreError(
                    f"{path} cannot be written: {error.strerror or error}.",
                    hint="Choose another folder with --to.",
                ) from error
            say(f"  {path}")
    store, model = shlex.quote(str(to / "results")), shlex.quote(str(to / "model"))
    say()
    data = f"--task {plan.corpus} --limit {plan.unseen} --store {store}"
    say_next(
        f"bertology show {result.identity[:8]} --store {store}",
        f"bertology export {result.identity[:8]} --format csv --to tables --store {store}",
        f"bertology run {_STUDY} --model {model} {data} --method zero",
        "bertology run attention-maps --corpus grammar --limit 100",
        f"bertology claims --search {_STUDY}",
    )


def preferred(differences: Sequence[float]) -> str:
    """In how many minimal pairs the right sentence is the likelier one."""
    from scipy.stats import binomtest

    n, right = len(differences), sum(d > 0 for d in differences)
    low, high = binomtest(right, n).proportion_ci(0.95)
    return (
        f"Of {n} pairs that differ in one such verb, the right one is likelier in "
        f"{100 * right / n:.0f} % (95 % interval {100 * low:.0f} to {100 * high:.0f} %; a guess "
        "gives 50 %)."
    )


def links_told(result: Result) -> Iterator[str]:
    """For each relation the head that surely follows it best, beside the best fixed offset."""
    measures = {m.name: m for m in result.measures()}
    table = result.tables["links"]
    for relation, (source, target) in RELATIONS.items():
        rows = table[(table["relation"] == relation) & (table["direction"] == "forward")]
        measure = measures.get(f"{relation}-excess")
        if measure is None or measure.sure is None or rows["share"].isna().all():
            yield f"{source} → {target}: no such words in these sentences."
            continue
        layer, head = _largest(measure, measure.sure)
        if layer is None:
            yield f"{source} → {target}: no head is surely better than a fixed offset."
            continue
        best = rows[(rows["layer"] == layer) & (rows["head"] == head)].iloc[0]
        yield (
            f"{source} → {target}: from the {source}, head {layer}.{head} attends most to its "
            f"{target} in {100 * best['share']:.0f} % of links; looking a fixed number of words "
            f"away finds {100 * (best['share'] - best['excess']):.0f} %. Surely better, by "
            f"{100 * best['excess_low']:.0f} to {100 * best['excess_high']:.0f} points."
        )


def _largest(measure: Measure, among: Bools) -> tuple[int | None, int | None]:
    """Layer and head of the largest value among some; None where there are none."""
    import numpy as np

    if not among.any():
        return None, None
    best = np.where(among, np.nan_to_num(measure.values, nan=-np.inf), -np.inf)
    layer, head = np.unravel_index(int(best.argmax()), best.shape)
    return int(layer), int(head)


def sink_told(result: Result) -> Iterator[str]:
    """Whether layers give most of their attention to [SEP], and which head gives most."""
    from bertology.stats import Estimate
    from bertology.studies.attention.token_classes import SINK

    layers, heads = result.tables["layers"], result.tables["heads"]
    sep = layers[layers["part"] == "sep"].sort_values("layer")
    level, n = float(result.arrays.attrs["level"]), int(result.arrays.attrs["examples"])
    together = 1 - (1 - level) / len(sep)  # intervals that hold for all layers at once
    shares = [
        Estimate(share, low, high, n, level).at_level(together)
        for share, low, high in zip(sep["share"], sep["low"], sep["high"], strict=True)
    ]
    most = max(range(len(shares)), key=lambda layer: shares[layer].value)
    sinks = [layer for layer, share in enumerate(shares) if share.low > SINK]
    strongest = f"Layer {most} gives it most: {_percent(shares[most])}."
    if sinks:
        yield (
            f"[SEP] is a sink: {_listed('layer', sinks)} surely give{'s' * (len(sinks) == 1)} it "
            f"more than {100 * SINK:.0f} % of all attention. {strongest}"
        )
    else:
        yield f"[SEP] is no sink here: no layer surely gives it {100 * SINK:.0f} %. {strongest}"
    rows = heads[heads["class"] == "sep"]
    best = rows.iloc[int(rows["weight"].argmax())]
    low, high = (float(best[f"weight_simultaneous_{end}"]) for end in ("low", "high"))
    weight = Estimate(float(best["weight"]), low, high, n, level)
    yield f"Of single heads, {best['layer']}.{best['head']} gives it most: {_percent(weight)}."


def _percent(share: Estimate) -> str:
    """`51 % (50 to 52 %)`."""
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def lost_told(result: Result, one: str) -> Iterator[str]:
    """What the task surely loses without each head, or each layer; `one` says which."""
    measures = {m.name: m for m in result.measures()}
    prefix = "" if one == "head" else "layer-"
    metric = str(result.arrays.attrs["metric"])
    yield _changes(measures[f"{prefix}ablation-effect"], one, f"the {metric}", " points")
    changed = "how probable right answers are (pairs that get worse less pairs that get better)"
    yield _changes(measures[f"{prefix}ablation-loss"], one, changed, " %")


def _changes(measure: Measure, one: str, of: str, unit: str) -> str:
    """How many heads or layers surely change something, and the strongest of them."""
    import numpy as np

    from bertology.results.number_text import interval_text

    sure, low, high = measure.sure, measure.low, measure.high
    if sure is None or low is None or high is None:
        return f"Whether a {one} changes {of} was not tested."
    sure = sure & np.isfinite(measure.values)
    count = int(sure.sum())
    if not count:
        return f"None of the {measure.values.size} {one}s surely changes {of}."
    begin = f"{count} of {measure.values.size} {one}s surely change{'s' * (count == 1)} {of}"
    order = np.argsort(-np.where(sure, np.abs(measure.values), -1), axis=None)[: min(count, _SHOWN)]
    told = []
    for flat in order:
        at = np.unravel_index(int(flat), measure.values.shape)
        value, least, most = (float(g[at]) for g in (measure.values, low, high))
        name = ".".join(str(int(i)) for i in at)
        told.append(f"{one} {name} {value:+.0f}{unit} {interval_text(least, most, '+.0f')}")
    few = "" if count <= _SHOWN else "the strongest are "
    return f"{begin}: {few}{'; '.join(told)}."


def sets_told(result: Result, sets: Mapping[str, str]) -> Iterator[str]:
    """What disabling several heads at once does; `sets`: the words for each set by its name."""
    from bertology.results.number_text import interval_text

    table = result.tables["sets"].set_index("set").to_dict("index")
    metric = result.arrays.attrs["metric"]
    for name, words in sets.items():
        row = table[name]
        low, high = (100 * row[f"simultaneous_{end}"] for end in ("low", "high"))
        surely = "surely changes" if row["sure"] else "does not surely change"
        yield (
            f"Disabling {words} {surely} the {metric}: {100 * row['difference']:+.0f} points "
            f"{interval_text(low, high, '+.0f')}, to {100 * row['score']:.0f} %."
        )


def decided(results: Sequence[Result]) -> tuple[list[Verdict], int]:
    """Verdicts that say something, and how many claims were judged without an answer."""
    from bertology.results.rules import Outcome

    verdicts = [v for result in results for v in result.verdicts()]
    order = (Outcome.HOLDS, Outcome.SIZE_OPEN, Outcome.FAILS, Outcome.NEGLIGIBLE)
    found = [v for outcome in order for v in verdicts if v.outcome is outcome]
    return found, sum(v.outcome is Outcome.INCONCLUSIVE for v in verdicts)


def _listed(one: str, numbers: Sequence[int]) -> str:
    """`layer 3`, `layers 3 and 4`, `layers 3, 4 and 7`."""
    from bertology.results.answers import listed

    return f"{one}{'s' * (len(numbers) > 1)} {listed(numbers)}"
