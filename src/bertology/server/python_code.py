"""The view as lines of Python that give the same numbers."""

from __future__ import annotations

from bertology.server.contexts import BUNDLED
from bertology.server.reading import MEANS_OVER, ModelReader
from bertology.server.sentences import Sentence
from bertology.server.shown import Changes
from bertology.server.views import ContextsQuestion, View


def python_code(reader: ModelReader, view: View, layer: int | None, head: int | None) -> str:
    """Lines to copy. With a layer and a head, `attention` is that map, else all maps."""
    sentence = reader.read(view.shown).sentence
    words = view.level == "words"
    lines = ["import bertology as bt"]
    if words:
        lines.append("from bertology.data.words.alignment import align, pool")
        lines.append("from bertology.data.words.treebank_words import treebank_words")
    lines += ["", *_model(reader), *_input(view), "", *_off(reader, view.off.changes)]
    if reader.shows_maps:
        lines += _attention(view, layer, head)
        lines += _words(view) if words else []
    return "\n".join([*lines, *_answers(reader, sentence)]) + "\n"


def _model(reader: ModelReader) -> list[str]:
    encoder = reader.encoder
    return [f"encoder = bt.load({encoder.name!r}, head={encoder.head!r})"]


def _input(view: View) -> list[str]:
    given = f"{view.text!r}" if view.pair is None else f"({view.text!r}, {view.pair!r})"
    lines = [f"text = {given}", "batch = encoder.encode(text)"]
    if view.masked:
        places = sorted(set(view.masked))
        lines.append(f'batch.inputs["input_ids"][0, {places}] = encoder.tokenizer.mask_token_id')
    return lines


def _off(reader: ModelReader, changes: Changes) -> list[str]:
    """The list `off`, if something is switched off, and the run."""
    record = ', record="layer.*.head.*.pattern"' if reader.shows_maps else ""
    if not changes:
        return [f"trace = encoder.run(batch{record})"]
    made, before = [], []
    if changes.heads and changes.how == "mean":
        texts = f'bt.load_corpus("grammar", limit={MEANS_OVER}).texts'
        before.append(f"means = encoder.head_means({texts})")
        made.append(f"bt.MeanHead({list(changes.heads)}, means)")
    elif changes.heads:
        kind = "ZeroHead" if changes.how == "zero" else "UniformAttention"
        made.append(f"bt.{kind}({list(changes.heads)})")
    if changes.layers:
        made.append(f"bt.SkipLayer({list(changes.layers)})")
    if changes.dimensions:
        made.append(f"bt.ZeroDimensions({list(changes.dimensions)})")
    off = f"off = [{', '.join(made)}]"
    return [*before, off, f"trace = encoder.run(batch{record}, do=off)"]


def _attention(view: View, layer: int | None, head: int | None) -> list[str]:
    if layer is None or head is None:
        shape = "(layer, head, query, key)"
        return [f'attention = trace["layer.*.head.*.pattern"][:, 0].numpy(force=True)  # {shape}']
    site = f"layer.{layer}.head.{head}.pattern"
    return [f'attention = trace["{site}"][0].numpy(force=True)  # (query, key)']


def _words(view: View) -> list[str]:
    """The map between words."""
    return [
        f"texts = {'[text]' if view.pair is None else 'list(text)'}",
        "words = [treebank_words(one) for one in texts]",
        "alignment = align(batch.encodings[0], *texts, words=words)",
        "attention = pool(attention, alignment, special=True)",
    ]


def _answers(reader: ModelReader, sentence: Sentence) -> list[str]:
    lines = []
    if reader.fills and sentence.masked:
        lines += [
            "",
            f"hidden = {list(sentence.masked)}",
            "probabilities = trace.logits[0, hidden].softmax(-1)  # (hidden, vocabulary)",
            "for position, row in zip(hidden, probabilities):",
            "    shares, ids = row.topk(5)",
            "    print(position, encoder.tokenizer.convert_ids_to_tokens(ids.tolist()), shares)",
        ]
    if reader.gives_value:
        lines += ["", "value = float(trace.logits)"]
    elif reader.labels is not None and reader.encoder.head == "classification":
        several = reader.several_labels
        turn = "sigmoid()" if several else "softmax(-1)"
        lines += ["", f"classes = trace.logits[0].{turn}", f"labels = {list(reader.labels)}"]
    elif reader.labels is not None and len(sentence.texts) > 1:
        lines += [
            "",
            "classes = trace.output.seq_relationship_logits[0].softmax(-1)",
            f"labels = {list(reader.labels)}",
        ]
    return lines


def contexts_code(reader: ModelReader, question: ContextsQuestion) -> str:
    """Lines that give `plane`, the place of each occurrence of a word."""
    word = question.word.strip()
    if question.contexts:
        name, forms = "concordance", [form.strip() for form in word.split(",")]
        lines = [
            f"texts = {[context.text for context in question.contexts]!r}",
            f"senses = {[context.sense or '' for context in question.contexts]!r}",
            f"lines = concordance(texts, {forms!r}, senses)",
        ]
    else:
        name = "sense_concordance"
        lines = [f'lines = sense_concordance(bt.load_corpus("{BUNDLED}"), {word!r})']
    read = f"concordance_states(encoder, lines, pooling={question.pooling!r})"
    place = f"plane_of(states[{question.layer + 1}][there], {question.method!r})"
    before = [
        "import bertology as bt",
        f"from bertology.annotated.concordance import {name}, concordance_states",
        "from bertology.annotated.sense_planes import plane_of",
        "",
        *_model(reader),
    ]
    after = [
        f"states, there = {read}  # (layers + 1, lines, dimensions), the embeddings first",
        f"plane = {place}  # (lines, 2)",
    ]
    return "\n".join([*before, *lines, *after]) + "\n"
