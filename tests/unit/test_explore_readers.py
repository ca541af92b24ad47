"""Many readers at once: everybody gets their own answer, in turn, and not too many wait."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from bertology.server.explore import explore_app
from bertology.server.mean_maps import MOST_MEANS
from bertology.server.reading import ModelReader
from bertology.server.shown import Changes, Shown
from bertology.server.working import BusyError, Kept, Turnstile, Worker
from explorer import PORT, answer, asking, encoder_of, maps_of, serving, view_of

PATIENCE = 60  # seconds; a loaded machine is slow


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "never"
        time.sleep(0.01)


def test_fifty_readers_do_not_disturb_each_other() -> None:
    encoder = encoder_of()
    views = []
    for reader in range(50):
        off: dict[str, Any] = {"heads": [[reader % 3, reader % 4]], "how": "uniform"}
        if reader % 3 == 1:
            off["how"] = ("zero", "mean")[reader % 2]
        if reader % 5 == 2:
            off = {"layers": [reader % 3], "dimensions": [reader % 24]}
        text = f"the {'dog keys cabinet it'.split()[reader % 4]} is here ."
        views.append(view_of(text, masked=[2], off=off))
    with asking(encoder) as client:
        alone = []
        for view in views:
            # A new explorer for each would be slow; answers are made anew where none is kept.
            alone.append((maps_of(client, view), answer(client, "predict", view=view)))
    assert len({str(told) for _, told in alone}) > 20
    with asking(encoder) as client:
        start = threading.Barrier(50)

        def ask(view: dict[str, Any]) -> list[Any]:
            start.wait()
            return [(maps_of(client, view), answer(client, "predict", view=view)) for _ in "ab"]

        with ThreadPoolExecutor(50) as readers:
            together = list(readers.map(ask, views))
    for (maps, told), answers in zip(alone, together, strict=True):
        for own_maps, own_told in answers:
            assert own_told == told
            assert own_maps[0] == maps[0]
            assert (own_maps[1] == maps[1]).all()


def test_a_reading_is_made_once_for_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = encoder_of()
    reader = ModelReader(encoder)
    runs: list[object] = []
    run = encoder.run
    monkeypatch.setattr(encoder, "run", lambda *a, **k: (runs.append(a), run(*a, **k))[1])
    shown = Shown("the keys", changes=Changes(heads=((0, 1),)))
    first, second = reader.begin(shown), reader.begin(shown)
    assert first is second
    assert first.result() is reader.read(shown)
    assert len(runs) == 1
    assert reader.read(shown.intact) is not first.result()
    reader.close()


def test_what_is_kept_is_bounded_and_failures_are_not_kept() -> None:
    worker, made = Worker(), []

    def make(key: int) -> str:
        made.append(key)
        if key < 0:
            raise ValueError(key)
        return "x" * key

    kept: Kept[int, str] = Kept(worker, make, size=len, room=10)
    for key in (4, 4, 5, 4, 6, 4, 5):
        assert kept.get(key) == "x" * key
        assert kept.held <= 10
    # 6 drove out 5, which had been asked for longest ago.
    assert made == [4, 5, 6, 5]
    assert kept.get(100) == "x" * 100  # too large to be kept
    assert kept.held <= 10
    for _ in range(2):
        with pytest.raises(ValueError, match="-1"):
            kept.get(-1)
    assert made.count(-1) == 2
    worker.close()


def test_a_long_question_lets_others_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean over many examples is many small pieces of work."""
    encoder = encoder_of()
    order: list[str] = []
    run, begin = encoder.run, Worker.begin
    begun, queued, go_on = threading.Event(), threading.Event(), threading.Event()

    def watched(batch: Any, **options: Any) -> Any:
        order.append("mean" if options.get("reduce") else "maps")
        if order.count("mean") == 2:
            begun.set()
            assert go_on.wait(PATIENCE)
        return run(batch, **options)

    def watched_begin(worker: Worker, work: Callable[[], Any]) -> Any:
        is_short = begun.is_set()  # the long one waits for its second pass
        future = begin(worker, work)
        if is_short:
            queued.set()
        return future

    monkeypatch.setattr(Worker, "begin", watched_begin)
    with asking(encoder) as client, ThreadPoolExecutor(2) as readers:
        maps_of(client, view_of("The keys to the old cabinet are on the table."))
        encoder.run = watched  # type: ignore[method-assign]
        long = readers.submit(client.post, "/api/mean", json={"task": "grammar", "examples": 8})
        assert begun.wait(PATIENCE)
        short = readers.submit(maps_of, client, view_of("the dog"))
        assert client.get("/").status_code == 200  # pages need neither model nor thread
        assert queued.wait(PATIENCE)
        go_on.set()
        short.result(PATIENCE)
        seen = list(order)
        assert long.result(PATIENCE).status_code == 200
    assert seen.index("maps") < 8, "it came after a few examples, not after all"
    assert order.count("mean") == 8


def test_nobody_computes_a_mean_for_those_who_have_gone() -> None:
    encoder = encoder_of()
    run, begun, go_on = encoder.run, threading.Event(), threading.Event()
    passes: list[object] = []

    def watched(*arguments: Any, **options: Any) -> Any:
        if "reduce" in options:
            passes.append(options)
            begun.set()
            assert go_on.wait(PATIENCE)
        return run(*arguments, **options)

    encoder.run = watched  # type: ignore[method-assign]
    with serving(encoder) as address, httpx.Client(base_url=address, timeout=PATIENCE) as client:
        leaving = http.client.HTTPConnection(urlsplit(address).netloc)
        asked = json.dumps({"task": "grammar", "examples": 64})
        leaving.request("POST", "/api/mean", asked, {"Content-Type": "application/json"})
        assert begun.wait(PATIENCE)
        leaving.close()
        client.get("/")  # who is answered after somebody left comes after that was noticed
        go_on.set()
        answer(client, "predict", view=view_of(masked=[2]))
    # The server has stopped, which it does when all is answered that was asked.
    assert 0 < len(passes) < 8


def test_few_means_are_made_at_once() -> None:
    encoder = encoder_of()
    run, go_on = encoder.run, threading.Event()

    def slow(*arguments: Any, **options: Any) -> Any:
        assert "reduce" not in options or go_on.wait(PATIENCE)
        return run(*arguments, **options)

    asked = {"task": "grammar", "examples": 2}
    everybody = MOST_MEANS + 1
    with asking(encoder) as client, ThreadPoolExecutor(everybody) as readers:
        encoder.run = slow  # type: ignore[method-assign]
        made = [readers.submit(client.post, "/api/mean", json=asked) for _ in range(everybody)]
        try:
            refused = next(as_completed(made, PATIENCE)).result()  # the others are still waiting
        finally:
            go_on.set()
        assert refused.status_code == 503
        assert refused.json()["error"] == f"{MOST_MEANS} means are waiting already."
        statuses = sorted(future.result(PATIENCE).status_code for future in made)
        assert statuses == [200] * MOST_MEANS + [503]
        assert client.post("/api/mean", json=asked).status_code == 200


def test_too_many_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    import bertology.server.explore as module

    gates: list[Turnstile] = []  # that of all questions, then that of means

    def narrow(*_: Any, **__: Any) -> Turnstile:
        gates.append(Turnstile(2))
        return gates[-1]

    monkeypatch.setattr(module, "Turnstile", narrow)
    encoder = encoder_of()
    run, go_on = encoder.run, threading.Event()

    def slow(*arguments: Any, **options: Any) -> Any:
        assert go_on.wait(PATIENCE)
        return run(*arguments, **options)

    with asking(encoder) as client, ThreadPoolExecutor(2) as readers:
        maps_of(client, view_of("The keys to the old cabinet are on the table."))
        encoder.run = slow  # type: ignore[method-assign]
        waiting = [readers.submit(maps_of, client, view_of(f"the {w}")) for w in ("dog", "key")]
        wait_until(lambda: gates[0].inside == 2)
        done = client.post("/api/maps", json={"view": view_of("it")})
        assert done.status_code == 503
        assert "waiting already" in done.json()["error"]
        assert "Try again" in done.json()["hint"]
        assert client.get("/").status_code == 200
        go_on.set()
        assert all(future.result(PATIENCE)[0]["size"] == 4 for future in waiting)
        wait_until(lambda: gates[0].inside == 0)  # they leave a little after they are answered
        assert maps_of(client, view_of("it"))[0]["size"] == 3, "there is room again"


def test_a_turnstile_counts_out_those_that_fail() -> None:
    import asyncio

    async def go() -> None:
        gate = Turnstile(1)
        first = gate()
        await anext(first)
        with pytest.raises(BusyError):
            await anext(gate())
        with pytest.raises(RuntimeError):
            await first.athrow(RuntimeError("the question failed"))  # type: ignore[attr-defined]
        assert gate.inside == 0

    asyncio.run(go())


def test_the_labelling_page_shares_the_model_not_the_tokenizer(tmp_path: Any) -> None:
    from bertology.data.map_labels import MapRecipe, read_labels
    from bertology.server.labelling import Labelling

    encoder = encoder_of()
    plan = [MapRecipe("tiny", "c", "s", str(i), "the keys", None, 0, i) for i in range(3)]
    labelling = Labelling(plan, tmp_path / "labels.jsonl", annotator="ann", turn=1)
    with asking(encoder, labelling=labelling) as client:
        assert client.get("/api/model").json()["annotate"] is True
        assert client.get("/annotate").status_code == 200
        assert client.get("/annotate/agreement").status_code == 200
        assert client.get("/annotate/api/maps/0").json()["tokens"][0] == "[CLS]"
        done = client.post("/annotate/api/label", json={"number": 0, "label": "block"})
        assert done.json()["labelled"] == 1
        assert maps_of(client, view_of())[0]["size"] == 11
    assert [x.label for x in read_labels(tmp_path / "labels.jsonl")] == ["block"]


def test_an_explorer_needs_a_tokenizer() -> None:
    from bertology.errors import ModelError
    from bertology.model.encoder import Encoder

    with pytest.raises(ModelError, match="without a tokenizer"):
        explore_app(Encoder(encoder_of().model, None, name="mute"), port=PORT)
