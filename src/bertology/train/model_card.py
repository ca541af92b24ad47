"""The model card: what a model is, what it was made from and how; all of it from its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bertology.train.records import TrainingRecord

_LOADING = """\
```python
import bertology as bt

encoder = bt.load("{name}", head="mlm")  # the path of this folder
```

```python
from transformers import AutoModelForPreTraining, AutoTokenizer

# Here, too, the name stands for the path of this folder.
tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForPreTraining.from_pretrained("{name}")
```"""

LOADED_BY_TRANSFORMERS = """\
```python
from transformers import AutoModelForSequenceClassification, AutoTokenizer

# The name stands for the path of this folder.
tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSequenceClassification.from_pretrained("{name}")
```"""


def model_card(record: TrainingRecord, *, name: str) -> str:
    """A README.md with front matter for a pre-trained model; every number is the record's."""
    lines = [
        *card_head("fill-mask", _given(record["made_by"]["card"])),
        f"# {name}",
        "",
        *_summary(record),
        *_text(record),
        *_objective(record),
        *_training(record),
        *_scores(record),
        "## How to load it",
        "",
        _LOADING.format(name=name),
        "",
        *_relations(record),
        *_limits(record),
        *card_versions(record),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _given(card: Mapping[str, object]) -> dict[str, object]:
    return {key: card[key] for key in ("license", "language") if key in card}


def card_head(
    pipeline: str, given: Mapping[str, object] | None = None, *, plain: bool = True
) -> Iterator[str]:
    """The front matter that the Hugging Face hub reads; `plain`: transformers loads it alone."""
    import yaml

    fields = {
        **(given or {}),
        "library_name": "transformers" if plain else "bertology",
        "pipeline_tag": pipeline,
        "tags": ["bert", "bertology"],
    }
    yield from ["---", yaml.safe_dump(fields, sort_keys=False, allow_unicode=True).rstrip(), "---"]
    yield ""


def _summary(record: TrainingRecord) -> Iterator[str]:
    model = record["recipe"]["model"]
    yield (
        f"A BERT of {model['layers']} layers × {model['heads']} heads, {model['hidden']} wide, "
        f"trained {_beginning(record)} on {record['tokens_seen']:,} tokens with bertology "
        f"{record['versions'].get('bertology', '')}.".replace(" .", ".")
    )
    yield ""
    if remarks := record["made_by"]["card"].get("remarks"):
        yield from [str(remarks).strip(), ""]
    vocabulary = record["made_by"]["vocabulary"]
    pieces = f"{model['vocab_size']:,}"
    if "from" in vocabulary:
        pieces += f", from {vocabulary['from']}"
    else:
        pieces += ", WordPiece, " + ("uncased" if vocabulary["lowercase"] else "cased")
    yield from card_table(
        ("", ""),
        [
            ("parameters", f"{record['parameters']:,}"),
            ("layers × heads", f"{model['layers']} × {model['heads']}"),
            ("width", model["hidden"]),
            ("vocabulary", pieces),
            ("longest input", f"{model['max_length']} tokens"),
        ],
    )


def _beginning(record: TrainingRecord) -> str:
    if (earlier := record.get("earlier")) is None:
        return "from random weights"
    seen = earlier.get("tokens_seen")
    return f"further from {earlier['name']}" + (f", which had seen {seen:,}," if seen else "")


def _text(record: TrainingRecord) -> Iterator[str]:
    text = record["text"]
    yield from ["## Text", ""]
    sources = record["made_by"]["text"].get("sources", ())
    if sources:
        rows = [
            (
                f"[{s['name']}]({s['url']})" if s.get("url") else s["name"],
                s["licence"],
                "" if s.get("words") is None else f"{s['words']:,}",
            )
            for s in sources
        ]
        yield from card_table(("source", "licence", "words"), rows)
    read = [
        (f["name"], f"{f['documents']:,}", f"{f['sentences']:,}", f"{f['words']:,}")
        for f in text["sources"]
    ]
    yield from card_table(("read from", "documents", "sentences", "words"), read)
    yield (
        f"In tokens of this vocabulary: {text['tokens']:,} to train on and "
        f"{text['held_out_tokens']:,} held out. Fingerprint: `{text['fingerprint']}`."
    )
    yield ""


def _objective(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Objective", ""]
    stages = record["recipe"]["stages"]
    for stage in stages:
        objective = stage["objective"]
        masking = objective["masking"]
        when = "" if len(stages) == 1 else f" From {100 * stage['begins']:g} % of the steps on,"
        when += "" if len(stages) == 1 else f" with weight {stage['weight']:g}."
        yield (
            f"- Losses: {', '.join(objective['losses'])}. Rows: {objective['pairing']}. "
            f"Hidden: {100 * masking['share']:g} % of the tokens, by {masking['units']}; "
            f"{100 * masking['masked']:g} % of those as [{masking['token'].upper()}], "
            f"{100 * masking['random']:g} % as a random piece; "
            + (f"{masking['copies']} fixed masks." if masking["copies"] else "drawn in every pass.")
            + when
        )
    yield ""


def _training(record: TrainingRecord) -> Iterator[str]:
    recipe = record["recipe"]
    phases = "; ".join(
        f"{p['length']} tokens for {100 * p['share']:g} % of the steps"
        + (f", {p['layers']} layers" if p.get("layers") else "")
        for p in recipe["phases"]
    )
    rows = [
        ("steps", f"{recipe['steps']:,}"),
        ("tokens per update", f"{recipe['batch_tokens']:,}"),
        ("tokens seen", f"{record['tokens_seen']:,}"),
        ("passes over the text", f"{record['tokens_seen'] / record['text']['tokens']:.2f}"),
        ("rows", phases),
        ("optimizer", f"{recipe['optimizer']}, betas {tuple(recipe['betas'])}"),
        ("learning rate", f"{recipe['learning_rate']:g}, {recipe['schedule']}"),
        ("warm-up", f"{100 * recipe['warmup']:g} % of the steps"),
        ("weight decay", f"{recipe['weight_decay']:g}"),
        ("gradient clipped at", f"{recipe['clip']:g}"),
        ("dropout", f"{recipe['model']['dropout']:g}"),
        ("precision", recipe["precision"]),
        ("seed", recipe["seed"]),
        ("device", f"{record['processes']} × {record['device']}"),
        ("time", f"{record['seconds']:,.0f} s"),
    ]
    yield from ["## Training", "", *card_table(("", ""), rows)]
    yield from ["The whole recipe is in `bertology.json`.", ""]


def _scores(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Held-out scores", ""]
    if not record.get("scores"):
        yield from ["None were measured.", ""]
        return
    rows = [(name.replace("_", " "), _score(name, v)) for name, v in record["scores"].items()]
    yield from card_table(("", ""), rows)
    yield "On the held-out text, by the objective above: losses in nats, accuracies in per cent."
    yield ""


def _score(name: str, value: float) -> str:
    return f"{100 * value:.1f} %" if name.endswith("accuracy") else f"{value:.3f}"


def _relations(record: TrainingRecord) -> Iterator[str]:
    """What the classes of the sentence head are, which its config cannot tell."""
    for relations in record["relations"]:
        if relations:
            classes = ", ".join(f"{i} {name}" for i, name in enumerate(relations))
            yield from [f"Classes of the relation between two parts: {classes}.", ""]
            return


def _limits(record: TrainingRecord) -> Iterator[str]:
    language = record["made_by"]["card"].get("language")
    yield from ["## Limits", ""]
    yield (
        "- It knows what its text says"
        + (f" (language: {language})" if language else "")
        + ", with the errors and prejudices of that text."
    )
    yield "- It was not examined for harmful associations, and is meant for research."
    yield "- It is one run with one seed; other seeds give other numbers."
    yield from [
        "- Nothing that models are tested on was taken out of the text by this training.",
        "",
    ]


def card_versions(record: TrainingRecord, made: str = "Trained") -> Iterator[str]:
    """With which libraries, and when."""
    listed = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    yield from ["## Versions", "", f"{listed}. {made} on {record['created'][:10]}.", ""]


def card_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A table in Markdown, and an empty line after it."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(v).replace("|", "\\|") for v in row) + " |"
    yield ""
