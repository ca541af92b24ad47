"""Do outlier dimensions depend on the recipe? Tiny models by rate, width and length.

Each recipe differs from the first in one thing: the learning rate, the width, or the number of
steps. Models learn masked words of the texts (the bundled grammar if none are given); steps on the
way are kept. Then `outlier-dimensions` looks at each, as `bertology steps` can at all its steps.
What was trained or measured before is not done again.

    python benchmarks/outlier_recipes.py --to FOLDER [--text FILE …] [--steps 600] [--layers 4]
        [--device cpu]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from machine import describe
from typer.testing import CliRunner

import bertology as bt
from bertology.cli.main import app

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
    first: dict[str, object] = {"rate": 1e-3, "hidden": 64, "steps": steps}
    yield "first", first
    for rate in (2.5e-4, 4e-3):
        yield f"rate {rate:g}", {**first, "rate": rate}
    for hidden in (32, 128):
        yield f"width {hidden}", {**first, "hidden": hidden}
    for share in (4, 2):
        yield f"steps {steps // share}", {**first, "steps": steps // share}


def main() -> None:
    """Train what is missing, then print a table."""
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
            f"{found['outlier_dimensions'].value:.0f} | {found['most_layers'].value:.0%} | "
            f"{' | '.join(shown)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
