"""The figure of how `bertology-mini` learnt, from the log that comes with it.

Usage: python benchmarks/mini_curve.py docs/images/mini-training.png
"""

from __future__ import annotations

import json
import sys

from bertology.model.loading.names import bundled_models
from bertology.report.figures import Line, lines


def main() -> None:
    log = bundled_models()["bertology-mini"] / "log.jsonl"
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    held = [e for e in entries if e.get("scores")]

    def tokens(chosen: list[dict[str, object]]) -> list[float]:
        return [float(e["tokens"]) / 1e6 for e in chosen]  # type: ignore[arg-type]

    figure = lines(
        [
            Line("training", tokens(entries), [e["losses"]["mlm"] for e in entries]),
            Line("held out", tokens(held), [e["scores"]["mlm_loss"] for e in held]),
        ],
        title="How bertology-mini learnt",
        xlabel="tokens seen (millions)",
        ylabel="loss of masked tokens (nats)",
        note="The plateau near 6.3 lasts for about 1,600 updates (100 M tokens). Two parts, each "
        "with a warm-up and a decay of the rate. Bumps: rows of 512 tokens. End of the first part: "
        "rows of 64; held-out rows have 128.",
    )
    figure.savefig(sys.argv[1], dpi=160)


if __name__ == "__main__":
    main()
