"""The tasks of those corpora of the grammar that have one."""

from __future__ import annotations

from bertology.data.corpus import Task

TASKS = {
    "grammar-paraphrase": Task(
        "grammar-paraphrase",
        "classification",
        ("not-paraphrase", "paraphrase"),
        ("accuracy", "f1"),
        pair=True,
    ),
    "grammar-entailment": Task(
        "grammar-entailment",
        "classification",
        ("entailment", "non-entailment"),
        ("accuracy",),
        pair=True,
    ),
    "grammar-heuristics": Task(
        "grammar-heuristics",
        "classification",
        ("entailment", "non-entailment"),
        ("accuracy",),
        pair=True,
    ),
    "grammar-acceptability": Task(
        "grammar-acceptability",
        "classification",
        ("unacceptable", "acceptable"),
        ("accuracy", "matthews"),
    ),
    "grammar-licensing": Task(
        "grammar-licensing",
        "classification",
        ("unacceptable", "acceptable"),
        ("matthews", "accuracy"),
    ),
    "grammar-objects": Task("grammar-objects", "classification", ("no", "yes"), ("f1", "accuracy")),
    "grammar-fragments": Task(
        "grammar-fragments",
        "classification",
        ("entailment", "neutral", "contradiction"),
        ("accuracy",),
        pair=True,
    ),
    "grammar-sense-pairs": Task(
        "grammar-sense-pairs", "classification", ("false", "true"), ("accuracy",), pair=True
    ),
    "grammar-word-pairs": Task(
        "grammar-word-pairs", "regression", (), ("spearman", "pearson"), pair=True
    ),
    "grammar-reading": Task(
        "grammar-reading", "multiple-choice", ("A", "B", "C"), ("accuracy",), pair=True
    ),
    "grammar-number-values": Task(
        "grammar-number-values", "regression", (), ("pearson", "spearman")
    ),
    "grammar-number-lists": Task(
        "grammar-number-lists", "classification", ("first", "second", "third", "fourth", "fifth")
    ),
    "grammar-number-sums": Task("grammar-number-sums", "regression", (), ("pearson", "spearman")),
}
