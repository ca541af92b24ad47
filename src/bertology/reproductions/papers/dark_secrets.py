"""Kovaleva, Romanov, Rogers and Rumshisky (2019): Revealing the Dark Secrets of BERT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bertology.model.shape import Shape
from bertology.reproductions.finding import find_or_take, find_tasks
from bertology.reproductions.numbers import (
    ablation_numbers,
    relation_numbers,
    starts_numbers,
    type_numbers,
)
from bertology.reproductions.paper import Exhibit, Numbers, Reproduction, Section, Unjudged
from bertology.reproductions.pictures import types_by_data
from bertology.reproductions.plan import Ask, Data, Join, Missing, Note, Plan, Step, Teach, Wishes

__all__ = ["REPRODUCTION"]

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


def _plan(wishes: Wishes, shape: Shape) -> Plan:
    """Models first, then each study on every task, then what joins their results."""
    tasks, missing = find_tasks(wishes.tasks or _TASKS, root=wishes.root)
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


_TASKS = ("grammar-entailment", "grammar-acceptability")


# The paper ---------------------------------------------------------------------------------------

_PUBLISHED_TABLE_1 = Numbers(
    ("data", "pre-trained", "fine-tuned, random start", "fine-tuned, pre-trained start", "metric",
     "size"),
    (
        ("MRPC", "0 / 31.6", "81.2 / 68.3", "87.9 / 82.3", "F1 / accuracy", "5.8K"),
        ("STS-B", "33.1", "2.9", "82.7", "accuracy (as printed)", "8.6K"),
        ("SST-2", "49.1", "80.5", "92", "accuracy", "70K"),
        ("QQP", "0 / 60.9", "0 / 63.2", "65.2 / 78.6", "F1 / accuracy", "400K"),
        ("RTE", "52.7", "52.7", "64.6", "accuracy", "2.7K"),
        ("QNLI", "52.8", "49.5", "84.4", "accuracy", "130K"),
        ("MNLI-m", "31.7", "61.0", "78.6", "accuracy", "440K"),
    ),
    note="One run each; no intervals are given. Mean gain over the pre-trained: 35.9 points.",
)  # fmt: skip
_PUBLISHED_FIGURE_2 = Numbers(
    ("data", "heterogeneous maps"), (("MRPC (lowest)", "32 %"), ("QQP (highest)", "61 %"))
)
_PUBLISHED_FIGURE_3 = Numbers(
    ("data", "sentences", "heads", "weight"),
    (("FrameNet", "473", "2 of 144", "0.201 and 0.209"),),
)
_PUBLISHED_FIGURES_8_AND_9 = Numbers(
    ("data", "best head", "best layer", "worst layer's loss"),
    (
        ("MRPC", "+1.2", "", ""),
        ("STS-B", "+0.1", "", ""),
        ("RTE", "", "+3.2 (the first)", ""),
        ("QNLI, MNLI", "", "", "up to 0.2"),
    ),
    note="Points. Only these are given in the text.",
)

_SECTIONS = (
    Section(
        "4.1",
        "Types of attention maps",
        did="Around 400 maps were labelled by hand as vertical, diagonal, both, block or "
        "heterogeneous, a convolutional network learnt the labels (F1 0.86), and it named the "
        "maps of up to 1,000 validation examples of each task.",
        found="The same few types recur in all heads and tasks. Between 32 % (MRPC) and 61 % (QQP) "
        "of the maps are heterogeneous, which bounds the share of heads that could carry more "
        "than position and separators.",
        exhibits=(
            Exhibit(
                "Figures 1 and 2",
                "map-types",
                caption="Share of each type of map, by layer, over the validation examples.",
                published="Figure 1 shows an example of each type; Figure 2 the shares by task.",
                numbers=_PUBLISHED_FIGURE_2,
                ours=type_numbers,
                joint=types_by_data,
                figures=("layers",),
                more=("heads",),
            ),
        ),
        differs=(
            "The network is ours, trained on other maps, labelled by other eyes; what it calls "
            "heterogeneous need not be what theirs did. Its agreement with the labels is told in "
            "the documentation.",
            "Intervals are over examples and do not cover the network's mistakes.",
        ),
    ),
    Section(
        "4.2",
        "Heads that follow a relation",
        did="For 473 short FrameNet sentences, the largest attention weight between a predicate "
        "and a core element of its frame was averaged for each head of the pre-trained model.",
        found="Two of 144 heads, with 0.201 and 0.209, lie above the 99th percentile. The authors "
        "call it limited evidence.",
        exhibits=(
            Exhibit(
                "Figures 3 and 4",
                "relation-heads",
                caption="Largest weight between linked words, mean over sentences, for each head; "
                "then what is left of it beyond unlinked words.",
                published="Figure 3 is a grid of all heads in which two stand out, with an example "
                "sentence; Figure 4 shows how FrameNet marks a sentence.",
                numbers=_PUBLISHED_FIGURE_3,
                ours=relation_numbers,
                figures=("weights", "excess"),
                more=("example",),
            ),
        ),
        differs=(
            "Two of 144 heads always lie above the 99th percentile, in a random model too. So "
            "linked words are also compared with unlinked ones, and the claims rest on that.",
        ),
    ),
    Section(
        "4.3",
        "What fine-tuning changes",
        did="Models were fine-tuned from pre-trained and from random weights (batches of 32, 3 "
        "epochs) and scored on validation data beside the pre-trained model without fine-tuning. "
        "The maps before and after were compared by their cosine.",
        found="Fine-tuning gains 35.9 points on average, and a random start stays below a "
        "pre-trained one on all tasks. On all tasks but QQP the last two layers change most.",
        exhibits=(
            Exhibit(
                "Table 1",
                "fine-tuning-starts",
                caption="Scores in points by what the model started from.",
                published="Scores of seven tasks for three ways to start.",
                numbers=_PUBLISHED_TABLE_1,
                ours=starts_numbers,
                more=("starts",),
            ),
            Exhibit(
                "Figure 5",
                "attention-change",
                caption="1 − cosine between the maps of each head before and after fine-tuning, "
                "mean over examples; darker is a greater change.",
                published="A grid of heads for each task, darkest in the last two layers; no "
                "summary number is given.",
                figures=("heads", "layers"),
                more=("divergence",),
            ),
        ),
        differs=(
            "Scores are means over seeds with intervals, where the paper has one run of each.",
            "“Pre-trained” is a head drawn at random on the pre-trained model, which says little "
            "about what the model knows; the column with a trained head on frozen features is "
            "ours.",
        ),
    ),
    Section(
        "4.4",
        "Attention to linguistic features",
        did="For each head, the attention that nouns, verbs, pronouns, subjects, objects, "
        "negations, [CLS] and [SEP] receive was summed over all tokens, divided by the length, and "
        "the highest of an example taken; pre-trained and fine-tuned models were compared.",
        found="Vertical stripes come from [CLS] (earlier layers) and [SEP] (later layers). Heads "
        "that look more at nouns, objects or negations after fine-tuning exist, with weights "
        "that are negligible beside those.",
        exhibits=(
            Exhibit(
                "Figure 6",
                "token-classes",
                caption="Mean weight of the most attended token of a class, by head; and how each "
                "layer divides its attention.",
                published="Grids of heads for [SEP] and [CLS] and each task; no numbers are given.",
                figures=("special", "layers"),
                more=("classes", "excess", "change"),
            ),
        ),
        differs=(
            "Words are tagged by the corpus where it is annotated, else by a small tagger that "
            "comes along and makes mistakes; the paper does not say what it used.",
            "The paper names no numbers for “predominantly” and “negligible”; ours are in the "
            "rules of the claims.",
        ),
    ),
    Section(
        "4.5",
        "Token-to-token attention",
        did="Heads that link verbs with subjects and nouns with pronouns were looked for, and what "
        "[CLS] attends to in the last layer.",
        found="The candidates are diagonal heads, hard to tell from attention to the neighbour. "
        "For most tasks [CLS] attends most to [SEP]; for STS-B, RTE and QNLI to punctuation.",
        exhibits=(
            Exhibit(
                "Figure 7",
                "token-to-token",
                caption="Mean weight that [CLS] gives to the most attended token of each class in "
                "the last layer; and, where links are annotated, the share of links that a head "
                "follows less that of the best fixed offset.",
                published="A grid of classes and heads for each task; no numbers are given.",
                figures=("first-heads",),
                more=("first-layers", "verb-subject", "noun-pronoun"),
            ),
        ),
        differs=(
            "How nouns were linked with pronouns is not told in the paper; here it is by "
            "coreference where that is annotated.",
            "Links are looked for in the pre-trained model, on sentences with gold annotation.",
        ),
    ),
    Section(
        "4.6",
        "Disabling heads and layers",
        did="Each head, then all heads of each layer, was made to attend evenly to all tokens, and "
        "the fine-tuned model was scored again.",
        found="For every task some heads are better disabled, by 0.1 (STS-B) to 1.2 points "
        "(MRPC); without its first layer RTE gains 3.2 points, while QNLI and MNLI lose up to 0.2.",
        exhibits=(
            Exhibit(
                "Figures 8 and 9",
                "head-ablation",
                caption="Change of the score in points without each head (outlined: surely not 0, "
                "for all heads together), and the score without each layer.",
                published="Figure 8: scores by disabled head. Figure 9: scores by disabled layer.",
                numbers=_PUBLISHED_FIGURES_8_AND_9,
                ours=ablation_numbers,
                figures=("heads", "layers"),
                more=("first-order",),
            ),
        ),
        differs=(
            "The best of many noisy scores looks like a gain even where no head matters. The "
            "paper has no test for that; ours holds for all heads together, and leaves more open.",
        ),
    ),
    Section(
        "5",
        "Discussion",
        did="The paper draws its results together: is the model larger than it needs to be, and "
        "do tasks use the heads that follow relations?",
        found="Single and several heads can be disabled without harm, and the two heads of "
        "section 4.2 matter for no task.",
        exhibits=(
            Exhibit(
                "",
                "head-sets",
                caption="Score with random sets of heads disabled at once.",
                published="Stated in words.",
                figures=("sizes",),
            ),
            Exhibit(
                "",
                "head-profile",
                caption="What the task loses without heads of each kind, less what it loses "
                "without the others.",
                published="Stated in words.",
                figures=("groups",),
                more=("relations",),
            ),
            Exhibit(
                "",
                "task-comparison",
                caption="Every two tasks: whether they miss the same heads of a layer, whether "
                "heads have the same type of map, and where the tasks are of one text and of "
                "pairs, how much more [SEP] gets in single texts.",
                published="Stated in words: STS-B and RTE rely on the same two heads, the same "
                "types recur whatever the task, and [SEP] weighs most on SST-2.",
                figures=("pairs",),
            ),
        ),
        differs=(
            "The paper disables no random sets, tests no group of heads and compares no tasks by "
            "number; all are ways to put its words to a test.",
        ),
    ),
)

_UNJUDGED = (
    Unjudged(
        "The two heads that STS-B and RTE share look at words that both sentences have.",
        "5",
        "The paper looked at some maps; here it is judged only whether tasks share heads. Which "
        "two they are is a matter of one training.",
    ),
    Unjudged(
        "The same types of maps are repeated in different heads.",
        "4.1 and 5",
        "With five types and many more heads it cannot be otherwise. Repetition over tasks is "
        "judged, and so is what disabling heads costs.",
    ),
    Unjudged(
        "Earlier layers hold fundamental, the last two task-specific information.",
        "4.3",
        "It is concluded from where maps change; no study here measures it.",
    ),
    Unjudged(
        "Striped maps come from pre-training and not from reasoning about the task.",
        "4.4",
        "It is an interpretation; its premises are judged.",
    ),
)

REPRODUCTION = Reproduction(
    name="dark-secrets",
    title="Revealing the Dark Secrets of BERT",
    citation="Olga Kovaleva, Alexey Romanov, Anna Rogers, Anna Rumshisky: Revealing the Dark "
    "Secrets of BERT. EMNLP 2019.",
    address="https://aclanthology.org/D19-1445",
    about="What do the attention heads of BERT do, what does fine-tuning change in them, and what "
    "happens without them? The paper looked at bert-base-uncased (12 layers of 12 heads) on seven "
    "tasks of GLUE.",
    tasks=_TASKS,
    sections=_SECTIONS,
    plan=_plan,
    unjudged=_UNJUDGED,
)
