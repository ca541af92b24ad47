"""The tasks of edge probing, read off a corpus's annotation: syntax, entities, roles, coreference.

Where a question is about two spans, the first is the one that is labelled: the dependent with its
head, the argument with its predicate, the mention with its antecedent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from bertology.annotated.word_labels import (
    Labelled,
    ProbedTask,
    Span,
    Unit,
    drawn_by,
    word,
    words_labelled,
)
from bertology.data.corpus import Example
from bertology.errors import DataError

Ask = Callable[[Example, int], Labelled]


def _field(name: str) -> Ask:
    return lambda example, seed: words_labelled([_plain(label) for label in example.get(name)])


def _plain(label: object) -> str:
    """Subtypes of relations are left out, as the tags of one language have them."""
    return str(label).partition(":")[0]


def _ancestor(steps: int) -> Ask:
    """The relation of the word that lies so many steps up the tree; none above the root."""

    def ask(example: Example, seed: int) -> Labelled:
        heads, relations = example.get("heads"), example.get("relations")
        labels: list[str | None] = []
        for place in range(len(heads)):
            at = place
            for _ in range(steps):
                at = heads[at] if at >= 0 else -1
            labels.append(_plain(relations[at]) if at >= 0 else None)
        return words_labelled(labels)

    return ask


def _arcs(example: Example, seed: int) -> Labelled:
    """Each word with its head, and with another word that is not."""
    heads, rng = example.get("heads"), drawn_by(seed, example)
    units: list[Unit] = []
    labels: list[str] = []
    for place, head in enumerate(heads):
        others = [w for w in range(len(heads)) if w not in (place, head) and heads[w] != place]
        if head >= 0 and others:
            units += [(word(place), word(head)), (word(place), word(rng.choice(others)))]
            labels += ["head", "other"]
    return Labelled(units, labels)


def _arc_relations(example: Example, seed: int) -> Labelled:
    heads, relations = example.get("heads"), example.get("relations")
    found = [(place, head) for place, head in enumerate(heads) if head >= 0]
    return Labelled(
        [(word(place), word(head)) for place, head in found],
        [_plain(relations[place]) for place, _ in found],
    )


def _spans(name: str) -> Ask:
    """The label of each span of a field; of spans with several, all, the outermost first."""

    def ask(example: Example, seed: int) -> Labelled:
        labels: dict[Span, list[str]] = defaultdict(list)
        for first, end, *label in example.get(name):
            if label and label[0] and end > first:
                labels[first, end].append(str(label[0]))
        return Labelled(
            [(span,) for span in labels], ["+".join(reversed(of)) for of in labels.values()]
        )

    return ask


def _chunk_tags(example: Example, seed: int) -> Labelled:
    """Whether a chunk begins at a word (B-NP), goes on (I-NP) or not (O)."""
    labels = ["O"] * len(example.get("words"))
    for first, end, name in example.get("chunks"):
        labels[first:end] = [f"B-{name}", *[f"I-{name}"] * (end - first - 1)]
    return words_labelled(labels)


def _phrase(steps: int) -> Ask:
    """The label of the phrase that lies so many above a word's own; none above the outermost."""

    def ask(example: Example, seed: int) -> Labelled:
        # Readers give phrases inside before those around them; the order of equal ones is kept.
        phrases = sorted(
            (p for p in example.get("constituents") if len(p) > 2 and p[2]),
            key=lambda phrase: phrase[1] - phrase[0],
        )
        above: list[list[str]] = [[] for _ in example.get("words")]
        for first, end, name, *_ in phrases:
            for place in range(first, end):
                above[place].append(str(name))
        return words_labelled([of[steps] if len(of) > steps else None for of in above])

    return ask


def _paired(rows: Sequence[Sequence[int | str]]) -> Labelled:
    """Of [one, its end, other, its end, label]: the second span first, as it is labelled."""
    units = [((int(r[2]), int(r[3])), (int(r[0]), int(r[1]))) for r in rows]
    return Labelled(units, [str(row[4]) for row in rows])


def _arguments(example: Example, seed: int) -> Labelled:
    return _paired(example.get("arguments"))


def _entity_relations(example: Example, seed: int) -> Labelled:
    return _paired(example.get("entity_relations"))


def _proto_roles(example: Example, seed: int) -> Labelled:
    """Of each argument and each property of the release, whether it has it."""
    units: list[Unit] = []
    labels, about = list[str](), list[str]()
    for first, end, other, last, properties in example.get("proto_roles"):
        for name, holds in properties.items():
            units.append(((other, last), (first, end)))
            labels.append("yes" if holds else "no")
            about.append(name)
    return Labelled(units, labels, about)


def _frame_elements(example: Example, seed: int) -> Labelled:
    """Of each phrase and the predicate, which element of the predicate's frame the phrase is."""
    known = example.annotations
    places = known.get("predicate") or [known.get("verb")]
    if places[0] is None:
        raise DataError(
            f"Example {example.id!r} has roles, and neither a predicate nor a verb.",
            hint="Annotate `predicate`, the positions of the words that evoke the frame.",
        )
    predicate = (min(places), max(places) + 1)
    roles = {name: span for name, span in example.get("roles").items() if span[0] < span[1]}
    return Labelled(
        [((span[0], span[1]), predicate) for span in roles.values()],
        [name.split("#")[0] for name in roles],  # a second piece has the same name and a number
    )


def _coreferent(example: Example, seed: int) -> Labelled:
    """Each mention with the last one before it in its cluster, and with one of another cluster."""
    clusters = [[(m[0], m[1]) for m in cluster] for cluster in example.get("coreference")]
    rng = drawn_by(seed, example)
    units: list[Unit] = []
    labels: list[str] = []
    for number, cluster in enumerate(clusters):
        others = [m for n, other in enumerate(clusters) if n != number for m in other]
        ordered = sorted(cluster)
        for antecedent, mention in pairwise(ordered):
            wrong = [m for m in others if m[1] <= mention[0] or m[0] >= mention[1]]
            if not wrong:
                continue
            units += [(mention, antecedent), (mention, rng.choice(wrong))]
            labels += ["same", "other"]
    return Labelled(units, labels)


def _needs(*fields: str) -> frozenset[str]:
    return frozenset({"words", *fields})


_TREE = _needs("heads", "relations")
_PHRASES = _needs("constituents")
PROBED: Mapping[str, ProbedTask] = {
    task.name: task
    for task in (
        ProbedTask("pos", "part of speech", _needs("pos"), _field("pos")),
        ProbedTask("tags", "the corpus's own tags", _needs("tags"), _field("tags")),
        ProbedTask("chunk-tag", "begin and kind of chunks", _needs("chunks"), _chunk_tags),
        ProbedTask("chunk", "kind of chunk", _needs("chunks"), _spans("chunks")),
        ProbedTask("constituent", "kind of phrase", _PHRASES, _spans("constituents")),
        ProbedTask("parent-phrase", "phrase above the word", _PHRASES, _phrase(0)),
        ProbedTask("grandparent-phrase", "second phrase above the word", _PHRASES, _phrase(1)),
        ProbedTask("great-grandparent-phrase", "third phrase above the word", _PHRASES, _phrase(2)),
        ProbedTask("relation", "relation to the head", _TREE, _ancestor(0)),
        ProbedTask("parent", "relation of the parent", _TREE, _ancestor(1)),
        ProbedTask("grandparent", "relation of the grandparent", _TREE, _ancestor(2)),
        ProbedTask("great-grandparent", "relation of the great-grandparent", _TREE, _ancestor(3)),
        ProbedTask("arc", "which of two words is the head", _TREE, _arcs, pairs=True),
        ProbedTask("arc-relation", "relation of a pair", _TREE, _arc_relations, pairs=True),
        ProbedTask("entity", "type of entity", _needs("entities"), _spans("entities")),
        ProbedTask("role", "semantic role", _needs("arguments"), _arguments, pairs=True),
        ProbedTask("frame-element", "frame element", _needs("roles"), _frame_elements, pairs=True),
        ProbedTask(
            "proto-role", "properties of arguments", _needs("proto_roles"), _proto_roles, pairs=True
        ),
        ProbedTask(
            "entity-relation", "relation of entities", _needs("entity_relations"),
            _entity_relations, pairs=True,
        ),
        ProbedTask(
            "coreference", "same referent", _needs("coreference"), _coreferent, pairs=True
        ),
    )
}  # fmt: skip
"""All tasks by name; those that a corpus annotates are asked by default."""
