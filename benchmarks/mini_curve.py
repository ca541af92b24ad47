"""The figure of how `bertology-mini` learnt, from the log that comes with it.

Usage: python benchmarks/mini_curve.py docs/images/mini-training.png
"""

from __future__ import annotations

import json
import sys

from bertology.model.locating import bundled_models
from bertology.report.figures import Line, lines


def main() -> None:
    log = bundled_models()["bertology-mini"] / "log.jsonl"
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    first = [e for e in entries if e["run"] == 1 and e["step"] <= 19_000]  # rows of 128 tokens
    held = [e for e in first if e.get("scores")]

    def tokens(chosen: list[dict[str, object]]) -> list[float]:
        return [float(e["tokens"]) / 1e6 for e in chosen]  # type: ignore[arg-type]

    figure = lines(
        [
            Line("training", tokens(first), [e["losses"]["mlm"] for e in first]),
            Line("held out", tokens(held), [e["scores"]["mlm_loss"] for e in held]),
        ],
        title="How bertology-mini learnt",
        xlabel="tokens seen (millions)",
        ylabel="loss of hidden tokens (nats)",
        note="Rows of 128 tokens. The plateau near 6.2 lasts for about 700 updates.",
    )
    figure.savefig(sys.argv[1], dpi=160)


if __name__ == "__main__":
    main()
