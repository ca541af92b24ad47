"""Do outlier dimensions depend on the recipe? Tiny models by rate, width and length.

Each recipe differs from the first in one thing: the learning rate, the width, or the number of
steps. Models learn masked words of the texts (the bundled grammar if none are given); steps on the
way are kept. Then `outlier-dimensions` looks at each model, and a picture (`recipes.svg`, `.png`)
shows how far the farthest LayerNorm weight lies at every step that was kept, by rate, width and
length. What was trained or measured before is not done again.

    python benchmarks/outlier_recipes.py --to FOLDER [--text FILE …] [--steps 600] [--layers 4]
        [--device cpu]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from machine import describe
from typer.testing import CliRunner

import bertology as bt
from bertology.cli.main import app
from bertology.model.outliers import weight_outliers
from bertology.report.look import ACCENT, GREY, INK, POSITIVE, look, new_panels
from bertology.run.over_steps import steps_of

_FIRST = {"rate": 1e-3, "hidden": 64}

_RECIPE = """\
text: {{files: [{files}], held_out: 0.05, sources: [{{name: given, licence: as given}}]}}
vocabulary: {{size: 2000}}
model: {{layers: {layers}, heads: 4, hidden: {hidden}, max_length: 64, dropout: 0.0}}
training:
  steps: {steps}
  batch_tokens: 2048
  phases: [{{length: 64}}]
  learning_rate: {rate}
  warmup: 0.05
  log_every: 50
  evaluate_every: {steps}
  save_every: {steps}
  milestones: 6
card: {{license: cc0-1.0, language: en}}
"""


def recipes(steps: int) -> Iterator[tuple[str, dict[str, object]]]:
    """The first, and those that differ from it in one thing."""
    first: dict[str, object] = {**_FIRST, "steps": steps}
    yield "first", first
    for rate in (2.5e-4, 4e-3):
        yield f"rate {rate:g}", {**first, "rate": rate}
    for hidden in (32, 128):
        yield f"width {hidden}", {**first, "hidden": hidden}
    for share in (4, 2):
        yield f"steps {steps // share}", {**first, "steps": steps // share}


def farthest(folder: Path) -> tuple[list[int], list[float]]:
    """The steps that a run kept, and the farthest weight at each, in standard deviations."""
    found = {}
    for step, name in steps_of(str(folder / "model")).items():
        weights = weight_outliers(bt.load(name, device="cpu"))
        assert weights is not None  # these are BERTs
        found[step] = float(weights.sigmas.max())
    return list(found), list(found.values())


def draw(curves: Mapping[str, tuple[list[int], list[float]]], to: Path) -> None:
    """A panel for each thing that recipes differ in, with the first recipe in all of them."""
    of_first = {"rate": _FIRST["rate"], "width": _FIRST["hidden"], "steps": curves["first"][0][-1]}
    with look():
        figure, panels = new_panels(8.4, 3.2, 1, len(of_first), share_rows=True)
        for i, (axes, (thing, value)) in enumerate(zip(panels, of_first.items(), strict=True)):
            shown = [n for n in curves if n == "first" or n.startswith(thing)]
            labels = [f"{thing} {value:g}" if n == "first" else n for n in shown]
            for name, label, colour in zip(shown, labels, (GREY, POSITIVE, ACCENT), strict=False):
                axes.plot(*curves[name], marker="o", markersize=3, color=colour, label=label)
            axes.axhline(3, color=INK, linewidth=0.8, linestyle="--")
            axes.set_xscale("symlog", linthresh=1)
            last = max(max(curves[name][0]) for name in shown)
            ticks = [0, *(10**k for k in range(len(str(last))))]
            axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            axes.minorticks_off()
            axes.set_xlim(left=-0.2)
            axes.set(xlabel="training step", ylabel="" if i else "farthest weight (σ)")
            axes.legend(frameon=False)
        figure.suptitle("When outlying weights emerge, by recipe. Dashed: what makes an outlier")
        for kind in ("svg", "png"):
            figure.savefig(to / f"recipes.{kind}", dpi=160)


def main() -> None:
    """Train what is missing, then print a table and draw a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--text", nargs="+", type=Path, help="one sentence per line")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    asked.to.mkdir(parents=True, exist_ok=True)
    files = [str(path.resolve()) for path in asked.text or ()]
    if not files:
        path = asked.to / "grammar.txt"
        texts = bt.load_corpus("grammar", split="train", limit=8000).texts
        documents = ["\n".join(map(str, texts[at : at + 8])) for at in range(0, len(texts), 8)]
        path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
        files = [str(path.resolve())]
    corpus = bt.load_corpus("grammar", limit=200)
    print(describe())
    print("| recipe | farthest σ | outliers | layers of one | rise (nats) | against random |")
    print("|---|---|---|---|---|---|")
    curves = {}
    for name, values in recipes(asked.steps):
        folder = asked.to / name.replace(" ", "-")
        written = _RECIPE.format(files=", ".join(files), layers=asked.layers, **values)
        config = asked.to / f"{folder.name}.yaml"
        config.write_text(written, encoding="utf-8")
        given = ["pretrain", "--config", str(config), "--to", str(folder)]
        done = CliRunner().invoke(app, [*given, "--device", asked.device])
        if done.exit_code:
            raise SystemExit(done.output)
        found = bt.run(
            "outlier-dimensions", str(folder / "model"), corpus=corpus, device=asked.device,
            store=str(asked.to / "results"), progress=False,
        ).evidence()  # fmt: skip
        shown = [f"{found[n]}" if n in found else "none" for n in ("loss_rise", "cost_over_random")]
        print(
            f"| {name} | {found['largest_sigma'].value:.1f} | "
            f"{found['outlier_dimensions'].value:.0f} | {found['layers_of_leading'].value:.0%} | "
            f"{' | '.join(shown)} |",
            flush=True,
        )
        curves[name] = farthest(folder)
    draw(curves, asked.to)
    print(f"picture: {asked.to / 'recipes.svg'}")


if __name__ == "__main__":
    main()
