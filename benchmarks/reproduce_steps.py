"""What each step of a paper costs: `python benchmarks/reproduce_steps.py primer [STEP ...]`.

Each step is run alone, in a fresh folder, in one process with one thread, until it is done or has
taken `--cap` seconds of CPU time; then what it takes in all is reckoned from how much was done.
What steps need of each other (fine-tuned models) is made first. `--quick` is that of `bertology
reproduce`; `--profile 20` prints the functions that took longest. How fast a core is at products
just then stands beside each line: on a busy machine a second of CPU does less.
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from bertology.errors import BertologyError, CapabilityError
from bertology.model.shape import Shape
from bertology.reproduce import PAPERS
from bertology.reproduce.execute import PlanExecutor
from bertology.reproduce.plan import PlanStep, ReproductionOptions, StepPlan
from bertology.reproduce.planner import plan_paper
from bertology.results.store import Store
from bertology.run.at_hand import ModelAtHand
from bertology.run.loading import ModelSource
from bertology.run.session import Session

SAMPLE = 0.01  # seconds of CPU between two looks at what is done


class Counted:
    """How much of a step is done."""

    done, total = 0, 0

    def start(self, title: str, total: int) -> None:
        self.done, self.total = 0, total

    def advance(self, steps: int) -> None:
        self.done += steps

    def stop(self) -> None:
        pass


class Watched:
    """The step at work: its CPU time, which functions take it, and its end where that is long."""

    def __init__(self, cap: float) -> None:
        self.cap, self.began, self.capped, self.looks = cap, 0.0, False, 0
        self.seen: Counter[str] = Counter()
        signal.signal(signal.SIGPROF, self._look)

    def start(self, *, capped: bool) -> None:
        self.seen.clear()
        self.looks, self.capped, self.began = 0, capped, time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SAMPLE, SAMPLE)

    def stop(self) -> float:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return time.process_time() - self.began

    @property
    def over(self) -> bool:
        return self.capped and time.process_time() - self.began > self.cap

    def _look(self, number: int, frame: FrameType | None) -> None:
        here = set()
        while frame is not None:
            code = frame.f_code
            if "/bertology/" in code.co_filename:
                here.add(f"{code.co_filename.rpartition('/bertology/')[2]}:{code.co_name}")
            frame = frame.f_back
        self.seen.update(here)
        self.looks += 1
        if self.over:
            raise CapabilityError("more than --cap")


def speed() -> float:
    """Products of one core, in 1e9 operations a second."""
    import torch

    rows, weights = torch.randn(2400, 192), torch.randn(768, 192)
    began = time.process_time()
    for _ in range(20):
        torch.nn.functional.linear(rows, weights)
    return 20 * 2 * rows.numel() * len(weights) / (time.process_time() - began) / 1e9


def measure(given: argparse.Namespace, to: Path) -> None:
    import torch

    torch.set_num_threads(1)
    options = ReproductionOptions(given.model, quick=given.quick)
    store, counted, watched = Store(str(to / "results")), Counted(), Watched(given.cap)

    def load(where: str, head: str) -> ModelAtHand:
        return ModelAtHand(ModelSource(where, device="cpu"), head, store)

    shape = Shape(**load(given.model, "base").about()["shape"])
    plan = plan_paper(PAPERS.get(given.paper), options, shape)
    study = {step.key: step.key.partition("@")[0] for step in plan.steps}
    asked = {name: at for at, name in enumerate(given.steps, 1)}
    wanted = [s for s in plan.steps if not asked or {s.key, study[s.key]} & asked.keys()]
    needed = {key for step in wanted for key in step.needs}
    first = [step for step in plan.steps if step.key in needed]
    rest = [step for step in wanted if step.key not in needed]
    rest.sort(key=lambda step: asked.get(step.key, asked.get(study[step.key], 0)))

    def log(step: PlanStep, status: str, more: str) -> None:
        if status == "running":
            return
        spent, share = watched.stop(), 1.0
        if status in ("not run", "failed"):
            share = counted.done / counted.total if counted.total else 0.0
        for name, looks in watched.seen.most_common(given.profile):
            print(f"      {looks / max(1, watched.looks):4.0%}  {name}")
        told = {"step": step.key, "seconds": round(spent, 1), "done": round(share, 3)}
        told |= {"in all": round(spent / share, 1) if share else None, "speed": round(speed())}
        print(json.dumps(told | {"status": status, "more": more[:60]}), flush=True)

    executor = PlanExecutor(given.model, to, Session(store, progress=counted), load=load, log=log)
    do = executor._do

    def timed(step: PlanStep, done: object) -> str:
        counted.done = counted.total = 0
        watched.start(capped=step.key not in needed)
        try:
            return do(step, done)
        except BertologyError as error:  # it may have stopped while a file was written
            raise CapabilityError("more than --cap") if watched.over else error from None
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    executor._do = timed
    executor.execute(StepPlan(plan.tasks, (*first, *rest)))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("paper")
    asked.add_argument("steps", nargs="*", help="study or study@corpus; all if none is named")
    asked.add_argument("--model", default="bertology-mini")
    asked.add_argument("--quick", action="store_true")
    asked.add_argument("--cap", type=float, default=60.0)
    asked.add_argument("--profile", type=int, default=0)
    asked.add_argument("--to", help="a folder for results; else a passing one")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        measure(given, Path(given.to or passing))


if __name__ == "__main__":
    main()
