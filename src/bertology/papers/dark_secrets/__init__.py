"""Kovaleva, Romanov, Rogers and Rumshisky (2019): Revealing the Dark Secrets of BERT."""

from __future__ import annotations

from bertology.papers.dark_secrets.plan import make_plan
from bertology.papers.dark_secrets.sections import SECTIONS, UNJUDGED
from bertology.reproduce.finding import BUNDLED_TASKS
from bertology.reproduce.paper import Reproduction

__all__ = ["REPRODUCTION"]

REPRODUCTION = Reproduction(
    name="dark-secrets",
    title="Revealing the Dark Secrets of BERT",
    citation="Olga Kovaleva, Alexey Romanov, Anna Rogers, Anna Rumshisky: Revealing the Dark "
    "Secrets of BERT. EMNLP 2019.",
    address="https://aclanthology.org/D19-1445",
    about="What do the attention heads of BERT do, what does fine-tuning change in them, and what "
    "happens without them? The paper looked at bert-base-uncased (12 layers of 12 heads) on seven "
    "tasks of GLUE.",
    tasks=BUNDLED_TASKS,
    sections=SECTIONS,
    plan=make_plan,
    unjudged=UNJUDGED,
)
