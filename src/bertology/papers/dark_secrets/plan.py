"""What is run for the paper: models first, then each study on every task, then what joins them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bertology.model.shape import Shape
from bertology.reproduce.finding import BUNDLED_TASKS, find_or_take, find_tasks
from bertology.reproduce.plan import Ask, Data, Join, Missing, Note, Plan, Step, Teach, Wishes

__all__ = ["make_plan"]

_MADE_HERE = "grammar"  # how the names of corpora open that the bundled grammar makes
_NARROW = 512  # models less wide than this want a higher rate
_PUBLISHED_EXAMPLES = 1000
_SENTENCES = 1100  # of the grammar: about as many are within the limits as in the paper


@dataclass(frozen=True)
class _Effort:
    """How much of a task is used; None is all of it."""

    examples: int
    scored: int | None
    train: int | None
    starts_train: int | None
    epochs: int
    batch_size: int
    narrow_rate: float | None
    set_sizes: tuple[int, ...] = ()


# As in the paper.
_FULL = _Effort(1000, None, None, None, epochs=3, batch_size=32, narrow_rate=None)
# Enough for the bundled model to learn a task of the grammar, within minutes on a small machine.
_SMALL = _Effort(
    200, 200, 3000, 1000, epochs=1, batch_size=16, narrow_rate=1.5e-4, set_sizes=(1, 2, 4, 8, 12)
)


def _effort(data: Data, wishes: Wishes) -> _Effort:
    effort = _SMALL if data.name.startswith(_MADE_HERE) else _FULL
    if (few := wishes.examples) is not None:
        effort = replace(effort, examples=few, scored=few)
    if (asked := wishes.train_examples) is not None:
        effort = replace(effort, train=asked, starts_train=asked)
    if wishes.epochs is not None:
        effort = replace(effort, epochs=wishes.epochs)
    return effort


def make_plan(wishes: Wishes, shape: Shape) -> Plan:
    """Models first, then each study on every task, then what joins their results."""
    tasks, missing = find_tasks(wishes.tasks or BUNDLED_TASKS, root=wishes.root)
    few = wishes.examples or _PUBLISHED_EXAMPLES
    made = Data(_MADE_HERE, limit=min(_SENTENCES, 10 * few)), Data(_MADE_HERE, limit=min(600, few))
    wanted = Data("framenet", root=wishes.root), Data("ud-ewt", limit=few, root=wishes.root)
    # The default run is the same on every machine, whatever lies there.
    local = not wishes.tasks and wishes.root is None
    roles, links = made if local else map(find_or_take, wanted, made)
    # FrameNet marks one frame in a sentence; the grammar all, each of which may be used.
    whole = {"every": False} if roles.name == _MADE_HERE else {}
    relations = Ask("relation-heads", roles, parameters={"relation": "frame", **whole})
    steps: list[Step] = [relations, Ask("token-to-token", links)]
    for data in tasks:
        steps += _steps(data, wishes, shape, relations.key)
    if len(tasks) > 1:
        compared = ("head-ablation", "map-types", "token-classes")
        joined = tuple(f"{study}@{data.name}" for study in compared for data in tasks)
        steps.append(Join(Data("all tasks"), joined, "task-comparison"))
    if not local:
        used = {roles.name, links.name}
        missing += [
            Missing(d.name, "It is not on this machine.") for d in wanted if d.name not in used
        ]
    notes = _notes(tasks, wishes, roles, links)
    return Plan(tuple(tasks), tuple(steps), tuple(missing), tuple(notes))


def _steps(data: Data, wishes: Wishes, shape: Shape, relations: str) -> Iterator[Step]:
    effort = _effort(data, wishes)
    rate = effort.narrow_rate if shape.hidden < _NARROW else None
    seen = replace(data, limit=effort.examples, train_limit=effort.train)
    teach = Teach(seen, effort.epochs, effort.batch_size, rate)
    yield teach
    yield Ask(
        "fine-tuning-starts",
        replace(data, limit=effort.scored),
        parameters={
            "seeds": wishes.seeds or 3,
            "examples": effort.starts_train,
            "epochs": effort.epochs,
            "batch_size": effort.batch_size,
            "learning_rate": rate,
            "train_split": data.train_split,
        },
    )
    yield Ask("map-types", seen, of=teach.key, parameters={"examples": effort.examples})
    yield Ask(
        "attention-change", seen, of=teach.key, compared="before",
        parameters={"examples": effort.examples},
    )  # fmt: skip
    yield Ask("token-classes", seen, of=teach.key, compared="other")
    yield Ask("token-to-token", seen, of=teach.key)
    ablation = Ask("head-ablation", seen, of=teach.key)
    yield ablation
    sizes = tuple(n for n in effort.set_sizes if 2 * n <= shape.layers * shape.heads)
    yield Ask("head-sets", seen, of=teach.key, parameters={"sizes": sizes})
    joined = (ablation.key, relations, f"map-types@{data.name}", f"attention-change@{data.name}")
    yield Join(seen, joined)


def _notes(tasks: list[Data], wishes: Wishes, roles: Data, links: Data) -> Iterator[Note]:
    made = [d.title for d in tasks if d.name.startswith(_MADE_HERE)]
    if made:
        yield Note(
            "4.3",
            f"The tasks {', '.join(made)} are not GLUE's: the bundled grammar makes them, so that "
            "everything can be run without files or network. They are easier and narrower.",
        )
    if any(d.name == "cola" for d in tasks):
        yield Note("4.3", "The paper leaves CoLA out.")
    few = [e for e in (_effort(d, wishes) for d in tasks) if e.starts_train != e.train]
    if few:
        yield Note(
            "4.3",
            f"The models of Table 1 learn from at most {few[0].starts_train:,} examples, to have "
            f"several seeds of each; those that are looked into, from {few[0].train:,}.",
        )
    samples = [d.title for d in tasks if d.sample]
    if samples:
        yield Note(
            "4.3",
            f"Of {', '.join(samples)}, only samples are on this machine; a model learns from fewer "
            "examples than the paper's did.",
        )
    if roles.name == _MADE_HERE:
        yield Note(
            "4.2",
            "FrameNet was not used. The links are those of the bundled grammar, which knows the "
            "frame and the roles of its own sentences: fewer words and frames, no mistakes. A "
            "sentence may have several frames, and is used for those within the limits.",
        )
    else:
        yield Note(
            "4.2",
            "The filters are those that the paper tells; they leave another number of sentences. "
            "Which release was used, and how tokens were counted, it does not say.",
        )
    if links.name == _MADE_HERE:
        yield Note("4.5", "Links between words are those of the bundled grammar.")
    for data in tasks:
        effort = _effort(data, wishes)
        if effort.examples < _PUBLISHED_EXAMPLES:
            yield Note(
                "4.6",
                f"{data.title}: studies look at {effort.examples} examples, so small effects stay "
                "open.",
            )
