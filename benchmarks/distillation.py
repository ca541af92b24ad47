"""How fast does a student learn when its teacher's answers are kept, beside the usual loop?

    python benchmarks/distillation.py [--device cpu] [--examples 256] [--epochs 3] [--rounds 3]
        [--teacher 12 12 384] [--student 6 12 384] [--batch 32] [--ways soft_labels patient layers]
        [--memory 32] [--low]

The usual loop shuffles the examples, pads each batch to its longest text, and asks the teacher,
without gradients, in every step; losses and optimizer are ours, so that only the loop differs. Ours
is `finetune`: batches of texts of similar length, on a GPU recorded steps, and the teacher's
answers computed at each step ("asked") or once ("kept"; the time of that, and of recording, is part
of what is measured). "layers" is the first stage of TinyBERT, which needs all states and maps: many
bytes for each example. All take turns in one process, on random models and texts of random words
with lengths as in SST-2 and MRPC; a ratio is to the usual loop of the same round, and the median of
all rounds counts. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import torch
import transformers
from machine import describe, wait

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.quiet import hush
from bertology.train.distil.layers import LayerFollowing
from bertology.train.distil.patient import Patient
from bertology.train.distil.seen import see
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.distil.students import StudentShape, make_student
from bertology.train.distil.teacher import GIB, Teacher
from bertology.train.encoded import encode_once
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.fresh import fresh_tokenizer
from bertology.train.optimizers import make_optimizer
from bertology.train.recorded import gains_by_recording, quick_products
from bertology.train.ways import Lesson

WAYS = {"soft_labels": SoftLabels, "patient": Patient, "layers": LayerFollowing}
TASK = Task("two", "classification", ("no", "yes"), ("accuracy",))


def texts(count: int) -> Corpus:
    """Texts of random words: half as long as those of SST-2, half as pairs of MRPC are."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnop", k=4)) for _ in range(900)]
    examples = []
    for i in range(count):
        mean = 20 if i % 2 else 50
        length = max(3, min(110, round(chance.gauss(mean, mean / 3))))
        examples.append(Example(str(i), " ".join(chance.choices(words, k=length)), label=i % 2))
    return Corpus("random", examples, frozenset({Field.TEXT, Field.LABEL}), TASK)


def usual_loop(
    student: Any, way: Any, data: Corpus, settings: FinetuneSettings, tokens: Any
) -> None:
    """What most scripts do: two models in every step."""
    teacher, device = way.teacher.model, student.device
    lesson = Lesson(student, tokens, data, 0, settings.learning_rate, settings.batch_size,
                    128, (), epochs=settings.epochs, precision=settings.precision)  # fmt: skip
    needs = way.teacher_needs(lesson)
    way.prepare(lesson)  # where it has maps of its own
    rows = encode_once(data, tokens, 128)
    optimizer = make_optimizer("adamw", student.parameters(), rate=settings.learning_rate,
                               weight_decay=0.01)  # fmt: skip
    order = torch.Generator().manual_seed(0)
    low = settings.precision == "bfloat16"
    student.train()
    with quick_products(device):
        for _ in range(settings.epochs):
            mixed = torch.randperm(len(data), generator=order).tolist()
            for start in range(0, len(mixed), settings.batch_size):
                chosen = mixed[start : start + settings.batch_size]
                inputs, targets = rows.batch(chosen, device)
                with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=low):
                    said = see(teacher, inputs, needs)
                lesson.moment.beside = {f"{way.name} {n}": a for n, a in said.items()}
                loss = way.loss(lesson, None, inputs, targets)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
                optimizer.step()
    way.finish(lesson)


def measured(asked: argparse.Namespace, name: str, world: tuple[Any, Corpus, Any]) -> list[str]:
    """Rows of the table for one way."""
    model, data, tokens = world
    layers, heads, hidden = asked.student
    shape = StudentShape(layers, heads, hidden, 4 * hidden)
    start = "layers" if hidden == asked.teacher[2] and heads == asked.teacher[1] else "random"
    settings = FinetuneSettings(
        epochs=asked.epochs, batch_size=asked.batch, learning_rate=1e-4, max_length=128,
        precision="bfloat16" if asked.low else "float32",
    )  # fmt: skip
    size = 0

    def taught(keep: str) -> float:
        nonlocal size
        student = make_student(model, shape, start=start)
        teacher = Teacher(model, keep=keep, memory=asked.memory * GIB)
        way = WAYS[name](teacher)
        wait(asked.device)
        begun = time.perf_counter()
        recorded = gains_by_recording(student)
        finetune(student, tokens, data, data[:1],
                 settings=replace(settings, ways=(way,), recorded=recorded))  # fmt: skip
        size = max([size, *(k.layout.bytes for k in teacher._kept.values())])
        wait(asked.device)
        return time.perf_counter() - begun

    def usual() -> float:
        student = make_student(model, shape, start=start)
        way = WAYS[name](Teacher(model, keep="never"))
        wait(asked.device)
        begun = time.perf_counter()
        usual_loop(student, way, data, settings, tokens)
        wait(asked.device)
        return time.perf_counter() - begun

    kinds: dict[str, Callable[[], float]] = {
        "usual loop": usual,
        "asked": lambda: taught("never"),
        "kept": lambda: taught("memory"),
    }
    for work in kinds.values() if asked.warm else ():
        work()
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(asked.rounds):
        for kind, work in kinds.items():
            found[kind].append(work())
    seen, rows = asked.epochs * len(data), []
    for kind, times in found.items():
        ratio = median(u / t for u, t in zip(found["usual loop"], times, strict=True))
        kept = f"{size / len(data) / 1024:.1f}" if kind == "kept" else ""
        rows.append(f"| {name} | {kind} | {seen / median(times):.0f} | {ratio:.2f} | {kept} |")
    return rows


def main() -> None:
    """Measure in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--examples", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--teacher", type=int, nargs=3, default=[12, 12, 384])
    parser.add_argument("--student", type=int, nargs=3, default=[6, 12, 384])
    parser.add_argument("--memory", type=int, default=32, help="GiB for answers that are kept")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=list(WAYS))
    parser.add_argument("--low", action="store_true", help="passes in bfloat16 (GPU)")
    parser.add_argument("--warm", action="store_true", help="one round first that does not count")
    asked = parser.parse_args()
    hush()
    print(describe())
    data = texts(asked.examples)
    tokens = fresh_tokenizer(data.texts, vocab_size=4000, max_length=128)
    layers, heads, hidden = asked.teacher
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokens), hidden_size=hidden, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=4 * hidden, max_position_embeddings=128,
        num_labels=2,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).to(asked.device).eval()
    lengths = encode_once(data, tokens, 128).lengths
    print(
        f"{len(data)} texts, {sum(lengths) / len(lengths):.0f} tokens on average; teacher "
        f"{' × '.join(map(str, asked.teacher))}, student {' × '.join(map(str, asked.student))}, "
        f"{asked.epochs} epochs, batches of {asked.batch}\n"
    )
    print("| way | teacher | texts/s | × usual | KiB kept for each text |\n|---|---|---|---|---|")
    for name in asked.ways:
        for row in measured(asked, name, (model, data, tokens)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
