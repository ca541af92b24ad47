"""What each step of a paper costs: `python benchmarks/reproduce_steps.py primer [STEP ...] [--cap 60]`.

Each step is run alone, in a fresh folder, in one process with one thread, until it is done or has taken
`--cap` seconds of CPU time; then what it takes in all is reckoned from how much was done. What steps
need of each other (fine-tuned models) is made first. `--quick` is that of `bertology reproduce`.
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

from bertology.errors import CapabilityError
from bertology.model.shape import Shape
from bertology.reproduce import PAPERS
from bertology.reproduce.execute import PlanExecutor
from bertology.reproduce.plan import ReproductionOptions
from bertology.reproduce.planner import plan_paper
from bertology.results.store import Store
from bertology.run.at_hand import ModelAtHand
from bertology.run.loading import ModelSource
from bertology.run.session import Session


TOTAL = ("all", "")


class Counted:
    """How much of a step is done."""

    done, total = 0, 0

    def start(self, title: str, total: int) -> None:
        self.done, self.total = 0, total

    def advance(self, steps: int) -> None:
        self.done += steps

    def stop(self) -> None:
        pass


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("paper")
    asked.add_argument("steps", nargs="*", help="study or study@corpus; all if none is named")
    asked.add_argument("--model", default="bertology-mini")
    asked.add_argument("--quick", action="store_true")
    asked.add_argument("--cap", type=float, default=60.0)
    asked.add_argument("--profile", type=int, default=0, help="so many functions that took longest")
    asked.add_argument("--to", help="a folder for results; else a passing one")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        measure(given, Path(given.to or passing))


def measure(given: argparse.Namespace, to: Path) -> None:
    import torch

    torch.set_num_threads(1)
    quick = {"quick": True} if given.quick else {}
    options = ReproductionOptions(given.model, **quick)
    store, counted, costs = Store(str(to / "results")), Counted(), {}

    def load(where: str, head: str) -> ModelAtHand:
        return ModelAtHand(ModelSource(where, device="cpu"), head, store)

    shape = Shape(**load(given.model, "base").about()["shape"])
    plan = plan_paper(PAPERS.get(given.paper), options, shape)
    wanted = {
        s.key for s in plan.steps if not given.steps or {s.key, s.key.partition("@")[0]} & {*given.steps}
    }
    needed = {key for step in plan.steps if step.key in wanted for key in step.needs}
    began, capped, seen = 0.0, [], Counter()

    def begin(key: str) -> None:
        nonlocal began
        began = time.process_time()
        counted.done = counted.total = 0
        capped.clear()
        seen.clear()
        if key in wanted - needed:
            capped.append(True)
        signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)

    def log(step: object, status: str, more: str) -> None:
        if status == "running":
            return
        signal.setitimer(signal.ITIMER_PROF, 0)
        spent = time.process_time() - began
        share = 1.0
        if status in ("not run", "failed"):
            share = counted.done / counted.total if counted.total else 0.0
        costs[step.key] = {"spent": spent, "share": share, "status": status, "more": more[:60]}
        whole = spent / share if share else float("nan")
        for (name, line), n in seen.most_common(given.profile):
            print(f"      {n / max(1, seen[TOTAL]):5.0%}  {name}:{line}")
        print(f"{step.key:45} {spent:7.1f} s  {share:5.0%}  about {whole:7.1f} s  {status} {more[:50]}", flush=True)

    def stop(number: int, frame: FrameType | None) -> None:
        seen.update({TOTAL: 1})
        here = set()
        while frame is not None:
            code = frame.f_code
            if "bertology" in code.co_filename:
                here.add((code.co_filename.partition("/src/")[2], code.co_name))
            frame = frame.f_back
        seen.update(here)
        if capped and time.process_time() - began > given.cap:
            raise CapabilityError("over time")

    signal.signal(signal.SIGPROF, stop)
    executor = PlanExecutor(
        given.model, to, Session(store, progress=counted), load=load, log=log
    )
    do = executor._do

    def timed(step: object, done: object) -> str:
        begin(step.key)
        try:
            return do(step, done)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    executor._do = timed
    steps = tuple(s for s in plan.steps if s.key in wanted | needed)
    executor.execute(type(plan)(plan.tasks, steps))
    print(json.dumps(costs))


if __name__ == "__main__":
    main()
