"""A copy of a classifier that is trained to give the same answers with other attention.

    adversary = attention_adversary(AdversaryJob(encoder, train), folder=context.trained)

After Wiegreffe and Pinter (2019): the loss is how far its answers are from those of the model, less
how far its attention is, both averaged over examples. Attention is that of the first token in the
last layer, which the classifier reads. It learns from texts only, never from labels. All of it is a
function of the job, so a training that was killed is done again with the same numbers; one that was
finished lies in `adversaries/IDENTITY` of the folder.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from bertology.data.corpus import Corpus
from bertology.drafts import draft_folder, mend, put_in_place
from bertology.errors import JobError, StoreError
from bertology.model.attributions.other_attention import divergence, total_variation
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.train.optimizers import learning_rate_factor, make_optimizer, set_rate

_WEIGHTS = "weights.safetensors"
_WARMUP, _DECAY, _CLIP = 0.1, 0.01, 1.0

Tell = Callable[[float], None]


@dataclass(frozen=True)
class AdversaryJob:
    """Everything that decides what the adversary will be."""

    encoder: Encoder
    train: Corpus
    weight: float = 0.1  # of the divergence of attention, against total variation of answers
    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 1e-4
    seed: int = 0

    @property
    def identity(self) -> str:
        """A hash of the job; names, paths and devices are left out."""
        asked = {
            "model": self.encoder.fingerprint,
            "train": self.train.fingerprint,
            **{n: getattr(self, n) for n in ("weight", "epochs", "batch_size", "learning_rate")},
            "seed": self.seed,
        }
        return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def attention_adversary(
    job: AdversaryJob, *, folder: Path | None = None, tell: Tell = lambda done: None
) -> Encoder:
    """The adversary, from `folder` if it is there; trained into it if not. `tell` gets 0 to 1."""
    encoder = job.encoder
    with encoder.turn():
        model = copy.deepcopy(encoder.model).eval()
    rival = Encoder(
        model, encoder.tokenizer, head=encoder.head, name=f"adversary of {encoder.name}"
    )
    place = None if folder is None else folder / "adversaries" / job.identity
    if place is not None and _read(rival, place):
        tell(1.0)
        return rival
    _train(job, rival, tell)
    if place is not None:
        _write(rival, place)
    return rival


def _read(rival: Encoder, place: Path) -> bool:
    from safetensors.torch import load_file

    mend(place)
    if not (place / _WEIGHTS).exists():
        return False
    try:
        rival.model.load_state_dict(load_file(place / _WEIGHTS))
    except Exception as error:  # safetensors has errors of its own
        raise StoreError(
            f"The adversary in {place} cannot be read: {error}.",
            hint="Delete that folder to train it again.",
        ) from error
    return True


def _write(rival: Encoder, place: Path) -> None:
    from safetensors.torch import save_file

    # Clones: tied weights share memory, which the format refuses.
    tensors = {n: w.detach().cpu().clone() for n, w in rival.model.state_dict().items()}
    with draft_folder(place) as draft:
        save_file(tensors, draft / _WEIGHTS)
        put_in_place(draft, place)


def _train(job: AdversaryJob, rival: Encoder, tell: Tell) -> None:
    texts = job.encoder.tokenize(job.train.texts)
    order = torch.Generator().manual_seed(job.seed)
    batches = -(-len(job.train) // job.batch_size)
    steps, done = job.epochs * batches, 0
    optimizer = make_optimizer(
        "adamw", rival.model.parameters(), rate=job.learning_rate, weight_decay=_DECAY
    )
    for _ in range(job.epochs):
        shuffled = torch.randperm(len(job.train), generator=order).tolist()
        for start in range(0, len(shuffled), job.batch_size):
            batch = texts.batch(shuffled[start : start + job.batch_size], job.encoder.device)
            factor = learning_rate_factor(done, rise=round(_WARMUP * steps), total=steps)
            set_rate(optimizer, job.learning_rate * factor)
            apart = how_far_apart(job.encoder, rival, batch, gradients=True)
            loss = (apart.variation - job.weight * apart.divergence).mean()
            if not torch.isfinite(loss):
                raise JobError(f"Training the adversary diverged at step {done + 1} of {steps}.")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(rival.model.parameters(), _CLIP)
            optimizer.step()
            done += 1
            tell(done / steps)
    rival.model.zero_grad(set_to_none=True)


@dataclass(frozen=True)
class Apart:
    """Of each example: how far answers and attention of two models are apart, 0 to 1 each."""

    variation: Tensor  # (B,)
    divergence: Tensor  # (B,) of the mean over heads
    same: Tensor  # (B,) whether both give the same answer


def how_far_apart(
    encoder: Encoder, rival: Encoder, batch: Batch, *, gradients: bool = False
) -> Apart:
    """Compare the answers, and the attention of the first token in the last layer."""
    site = f"layer.{encoder.shape.layers - 1}.head.*.pattern"
    one, other = (
        encoder.run(batch, record=site),
        rival.run(batch, record=site, gradients=gradients),
    )
    said = [trace.logits.float() for trace in (one, other)]
    maps = [trace[site][:, :, 0].float().mean(1) for trace in (one, other)]
    return Apart(
        total_variation(said[1].softmax(-1), said[0].softmax(-1)),
        divergence(maps[1], maps[0]),
        said[0].argmax(-1) == said[1].argmax(-1),
    )
