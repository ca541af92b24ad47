"""What the paper shows, section by section: its numbers, where ours stand, and what differs."""

from __future__ import annotations

from bertology.reproduce.numbers import (
    ablation_numbers,
    example_numbers,
    relation_numbers,
    starts_numbers,
    type_numbers,
)
from bertology.reproduce.paper import Exhibit, Numbers, Section, Unjudged
from bertology.reproduce.pictures import examples_by_type, types_by_data

__all__ = ["SECTIONS", "UNJUDGED"]

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

SECTIONS = (
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
                "Figure 1",
                "map-types",
                caption="Maps of each type, not picked by eye: the first that occur in short texts "
                "of the validation examples.",
                published="Maps of each type, chosen as typical; both axes are tokens, darker is "
                "more attention.",
                ours=example_numbers,
                joint=examples_by_type,
            ),
            Exhibit(
                "Figure 2",
                "map-types",
                caption="Share of each type of map, by layer, over the validation examples.",
                published="Shares of the types by task.",
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
                caption="Change of the score without a head of each kind, less that without one of "
                "the others; below 0, that kind is missed more.",
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

UNJUDGED = (
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
