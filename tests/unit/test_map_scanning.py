"""The kernels that read a map once say what plain torch says.

On a GPU they run there. Elsewhere Triton's interpreter runs them, where Triton is installed; that
must be asked for before the kernels are first imported, hence in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from bertology.annotated.map_types import scanning
from bertology.annotated.map_types.looks import Cells, Look, of_all_heads
from bertology.annotated.map_types.scanning import Scanner

SIZES = (1, 2, 5, 16, 30, 70)
LONG = (200, 512)  # for a GPU


def texts(size: int) -> torch.Tensor:
    """A sentence, a pair that is padded before and one that is padded after."""
    segments = torch.zeros(3, size, dtype=torch.long)
    segments[1, size // 2 :] = 1
    if size > 4:
        segments[2, size // 2 : -2], segments[2, -2:], segments[1, :1] = 1, -1, -1
    return segments


def attention(segments: torch.Tensor, heads: int) -> torch.Tensor:
    """Of all kinds: spread, sharp, on the diagonal, on the first token."""
    size, chance = segments.shape[1], torch.Generator().manual_seed(0)
    scores = torch.randn(3, heads, size, size, generator=chance)
    scores *= torch.tensor([1.0, 6.0, 1.0, 1.0])[:heads, None, None]
    scores[:, 2:3] += 5 * torch.eye(size)
    scores[:, 3:, :, 1:2] += 4
    return scores.masked_fill((segments < 0)[:, None, None], -1e9).softmax(-1)


def scanned(cells: Cells, layers: list[torch.Tensor], *, measures: bool) -> Look:
    scanner = Scanner(cells, len(layers), measures=measures)
    for maps in layers:
        scanner.scan(maps)
    return scanner.look()


def compare(device: str, sizes: tuple[int, ...]) -> None:
    for size in sizes:
        segments = texts(size)
        layers = [attention(segments, 4), attention(segments, 4).flip(1)]
        cells = Cells(segments)
        plain = of_all_heads([cells.look(maps, measures=True) for maps in layers])
        cells, layers = Cells(segments.to(device)), [maps.to(device) for maps in layers]
        once = scanned(cells, layers, measures=True)
        for name in ("small", "facts", "measures"):
            found, wanted = getattr(once, name).cpu(), getattr(plain, name)
            assert torch.allclose(found, wanted, atol=1e-4, rtol=1e-4), (size, name)
        # Maps that lie otherwise in memory are read as they lie.
        turned = [maps.transpose(1, 2).contiguous().transpose(1, 2) for maps in layers]
        again = scanned(cells, turned, measures=False)
        assert again.facts.equal(once.facts)
        assert again.measures is None


@pytest.mark.gpu
def test_the_kernels_say_what_torch_says() -> None:
    if not torch.cuda.is_available() or find_spec("triton") is None:
        pytest.skip("no CUDA device with Triton")
    compare("cuda", SIZES + LONG)


def test_the_kernels_say_what_torch_says_when_interpreted() -> None:
    if find_spec("triton") is None:
        pytest.skip("Triton is not installed: it comes with torch for CUDA")
    where = os.path.dirname(__file__)
    work = "import test_map_scanning as t; t.compare('cpu', t.SIZES)"
    done = subprocess.run(
        [sys.executable, "-c", work],
        env={
            **os.environ,
            "TRITON_INTERPRET": "1",
            "PYTHONPATH": os.pathsep.join([where, *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_without_a_triton_that_works_torch_reads_the_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not scanning.can_scan(torch.ones(1, 1, 2, 2))  # not on a GPU
    monkeypatch.setattr(scanning, "find_spec", lambda name: None)
    assert not scanning._triton_works.__wrapped__(0)

    def broken(*given: object, **more: object) -> None:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(scanning, "find_spec", lambda name: name)
    monkeypatch.setattr(scanning, "Scanner", broken)
    monkeypatch.setattr(torch, "full", lambda size, value, device: torch.ones(size) * value)
    with pytest.warns(RuntimeWarning, match="C compiler"):
        assert not scanning._triton_works.__wrapped__(0)
