"""A third-party package adds a study, a claim, a corpus and a model family by entry points.

The package is put on the path as an installer would leave it, without running one: its sources,
and a `.dist-info` folder with the entry points of its pyproject.toml.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PLUGIN = Path(__file__).resolve().parent
SOURCE = PLUGIN.parents[1] / "src"
COMMAND = "import sys; sys.argv[0] = 'bertology'; from bertology.cli.main import main; main()"
WORDS = "she sells sea shells by the shore how can a clam cram in clean cream can toy boat".split()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the plugin is installed."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    site = tmp_path_factory.mktemp("site")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return environment(PLUGIN / "src", site)


def environment(*folders: Path) -> dict[str, str]:
    """This process's environment with the folders, then our sources, at the head of the path."""
    path = os.pathsep.join(str(f) for f in (*folders, SOURCE))
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


def python(code: str, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True
    )


def bertology(*arguments: str, env: dict[str, str]) -> str:
    done = python(COMMAND, *arguments, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ernie(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random checkpoint of a family that bertology itself does not know."""
    import torch
    from transformers import BertTokenizerFast, ErnieConfig, ErnieModel

    folder = tmp_path_factory.mktemp("ernie")
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    torch.manual_seed(0)
    config = ErnieConfig(
        vocab_size=5 + len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    ErnieModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab=str(vocabulary)).save_pretrained(folder)
    return str(folder)


def test_every_command_lists_what_the_plugin_brings(installed: dict[str, str]) -> None:
    """And help comes from the fields of its study. One process for all: starting takes longest."""
    code = """
from bertology.cli.main import app
for words in ("studies", "claims", "datasets", "families", "run fertility --help"):
    print("=====")
    app(words.split(), prog_name="bertology", standalone_mode=False)
"""
    done = python(code, env=installed)
    assert done.returncode == 0, done.stderr
    _, studies, claims, datasets, families, help_ = done.stdout.split("=====\n")
    assert "fertility" in studies
    assert "fertility.few-pieces" in claims
    assert "twisters" in datasets
    assert "ERNIE" in families
    assert "--lowercase" in help_
    assert "Lowercase the text first." in help_


def test_without_the_plugin_its_study_is_unknown() -> None:
    done = python(COMMAND, "run", "fertility", "--help", env=environment())
    assert done.returncode == 2
    assert "fertility" in done.stdout + done.stderr


@pytest.mark.slow  # installs and starts processes; the study has tests of its own
def test_the_study_runs_on_the_family_and_the_corpus(
    installed: dict[str, str], ernie: str, tmp_path: Path
) -> None:
    env = {**installed, "BERTOLOGY_DATA": str(PLUGIN / "data")}
    store = ("--store", str(tmp_path))
    shown = bertology("run", "fertility", "--model", ernie, "--corpus", "twisters", *store, env=env)
    assert "holds" in shown
    assert "fewer than two pieces" in shown
    (folder,) = (tmp_path / "fertility").iterdir()
    assert (folder / "result.json").is_file()
    assert "fertility" in bertology("show", folder.name, *store, env=env)
    # A stored result is still data when the plugin is gone.
    assert "fertility" in bertology("show", folder.name, *store, env=environment())


def test_the_brought_family_is_instrumented(ernie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded patterns are the model's own, and disabling a head takes hold."""
    import torch

    import bertology as bt
    from bertology.model.families import FAMILIES

    monkeypatch.syspath_prepend(PLUGIN / "src")
    from bertology_fertility.family import ERNIE

    monkeypatch.setitem(FAMILIES._loaded, "ernie", ERNIE)
    encoder = bt.load(ernie, device="cpu")
    texts = ["she sells sea shells", "toy boat"]
    trace = encoder.run(texts, record="layer.*.head.*.pattern")
    model = type(encoder.model).from_pretrained(ernie, attn_implementation="eager").eval()
    with torch.no_grad():
        own = model(**encoder.encode(texts).inputs, output_attentions=True).attentions
    torch.testing.assert_close(trace["layer.*.head.*.pattern"], torch.stack(own))
    uniform = bt.UniformAttention(heads=[(1, 0)])
    off = encoder.run(texts, record="layer.1.head.0.pattern", do=[uniform])
    lengths = encoder.encode(texts).lengths
    expected = torch.arange(6) < lengths[:, None]
    expected = (expected / lengths[:, None])[:, None].expand(2, 6, 6)
    torch.testing.assert_close(off["layer.1.head.0.pattern"], expected)
