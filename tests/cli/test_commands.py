"""The commands in one process: help, listings, errors, and a run from start to export."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

from bertology.cli.main import app
from bertology.cli.run import _examples
from bertology.cli.typer_options import argument, in_options
from bertology.data.catalog import entries
from bertology.errors import ParameterError
from bertology.parameters import following, parameter
from bertology.results import claim_files
from bertology.studies import STUDIES
from toy.making import Diary, ToyWorld, make_metadata


def commands(group: Any, above: str = "") -> Iterator[str]:
    """Every command; of `run`, which has one for each study, only itself."""
    for name, command in group.commands.items():
        yield f"{above}{name}"
        if hasattr(command, "commands") and name != "run":
            yield from commands(command, f"{above}{name} ")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return ToyWorld(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def plugin(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The toy study and claim, brought by entry points."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.syspath_prepend(str(make_metadata(tmp_path_factory.mktemp("site"))))
    monkeypatch.setattr(STUDIES, "_targets", None)
    claim_files.read_all_claims.cache_clear()
    yield
    claim_files.read_all_claims.cache_clear()


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Diary:
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    return Diary(tmp_path / "diary")


def bertology(*arguments: Any, code: int = 0) -> str:
    """What the command printed, on both streams."""
    done = CliRunner().invoke(app, [str(a) for a in arguments], prog_name="bertology")
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output


def run_toy(world: ToyWorld, store: Path, *more: Any, code: int = 0) -> str:
    asked = ["--model", world.model, "--task", world.corpus, "--store", store, *more]
    return bertology("run", "toy-lengths", *asked, code=code)


@pytest.mark.parametrize("command", ["", *commands(get_command(app)), "run toy-lengths"])
def test_every_help_has_examples(command: str) -> None:
    shown = bertology(*command.split(), "--help")
    assert "Examples:" in shown
    assert f"bertology {command}".strip() in shown


@pytest.mark.parametrize(
    ("study", "needed"),
    [("relation-heads", "--no-every"), ("attention-change", "--before bertology-mini@2416")],
)
def test_examples_have_what_a_first_run_needs(study: str, needed: str) -> None:
    assert f"bertology run {study} --corpus grammar {needed}" in bertology("run", study, "--help")


def test_examples_name_bundled_data_that_fit() -> None:
    known, wrong = entries(), []
    for name in STUDIES:
        kind = STUDIES.get(name)
        needs, shown = kind.needs, " ".join(_examples(name, kind))  # printing all helps is slow
        for named in re.findall(r"--(?:task|corpus) (grammar\S*)", shown):
            entry = known[named]
            if not needs.fields <= set(map(str, entry.fields)) or (needs.task and not entry.task):
                wrong.append((name, named))
    assert not wrong
    assert "--task grammar-heuristics" in bertology("run", "heuristics", "--help")


def test_long_defaults_are_shown_whole() -> None:
    shown = " ".join(bertology("run", "heuristics", "--help").replace("│", " ").split())
    assert "adapters, hex, hypothesis-only, overlap-only" in shown


def test_the_version() -> None:
    import bertology as bt

    assert bertology("--version").strip() == f"bertology {bt.__version__}"


def test_the_help_of_a_study_is_its_docstring_and_fields() -> None:
    shown = " ".join(bertology("run", "toy-lengths", "--help").replace("│", " ").split())
    assert "How long are the texts, times a factor?" in shown
    assert "[Brackets] are harmless here." in shown
    for option in ("--factor", "--pieces", "--unit", "--layers", "--heads", "--strict"):
        assert option in shown
    assert "What lengths are multiplied with. [default: 1.0]" in shown
    assert "characters" in shown
    assert "words" in shown
    for option in ("--model", "--task", "--split", "--limit", "--workers", "--batch-tokens"):
        assert option in shown


@pytest.mark.usefixtures("drawn")
def test_a_run_is_shown_listed_and_exported(world: ToyWorld, tmp_path: Path, diary: Diary) -> None:
    store = tmp_path / "results"
    more = ["--pieces", 2, "--layers", "0,2", "--heads", "1.0,2.3", "--no-strict", "--limit", 4]
    shown = run_toy(world, store, *more)
    (folder,) = (store / "toy-lengths").iterdir()
    short = folder.name[:8]
    assert "toy-lengths of" in shown
    assert "holds" in shown
    assert "toy.words-are-long" in shown
    assert f"Result:  {folder}" in shown
    assert f"bertology show {short} --store {store}" in shown
    assert f"bertology export {short} --format csv" in shown
    assert (folder / "figures" / "lengths.svg").is_file()
    assert "heads = [[1, 0], [2, 3]]" in shown
    assert "strict = False" in shown
    assert short in bertology("list", "--store", store)
    assert "toy-lengths of" in bertology("show", short, "--store", store)
    assert '"command": "bertology run toy-lengths' in (folder / "result.json").read_text("utf-8")
    for format in ("csv", "parquet", "tex", "latex", "svg", "png", "pdf"):
        written = bertology(
            "export", short, "--format", format, "--to", tmp_path / "out", "--store", store
        )
        # A figure comes with the captions of all figures.
        assert all(Path(file).stat().st_size > 50 for file in written.split())
        assert len(written.split()) == 1 + (format in ("svg", "png", "pdf"))
    several = ("--to", tmp_path / "several", "--store", store)
    assert len(bertology("export", short, "--format", "csv,svg", *several).split()) == 3
    assert len(bertology("export", short, "--format", "all", *several).split()) == 8
    assert "8 rows" in shown
    run_toy(world, store, *more)
    assert diary.attempts() == {"part-0": 1, "part-1": 1}
    run_toy(world, store, *more, "--force")
    assert diary.attempts() == {"part-0": 2, "part-1": 2}


def test_listings() -> None:
    assert "toy-lengths" in bertology("studies")
    assert "How long are the texts" in bertology("studies")
    assert "toy.words-are-long" in bertology("claims")
    assert "toy.words-are-long" in bertology("claims", "--search", "one character")
    assert "No claim has all of 'zebra'" in bertology("claims", "--search", "zebra")
    claim = bertology("claims", "show", "toy.words-are-long")
    assert "Toy et al. 2026, section 1" in claim
    assert "mean_length above 1" in claim
    families = bertology("families")
    assert "DeBERTa" in families
    assert "patterns" in families
    assert "No results in" in bertology("list", "--store", "memory://nothing-here")


def test_the_catalogue_is_listed_and_one_corpus_is_shown(tmp_path: Path) -> None:
    assert "mrpc" in bertology("datasets")
    one = bertology("datasets", "mrpc", "--root", tmp_path)
    assert "Licence:" in one
    assert "Get it:" in one
    assert "No corpus has all of 'zebra crossing'" in bertology("datasets", "zebra", "crossing")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "toy-length", "--model", "m"], "Did you mean 'toy-lengths'?"),
        (["run", "toy-lengths"], None),
        (["run", "toy-lengths", "--model", "m", "--factor", "much"], "--factor"),
        (["run", "toy-lengths", "--model", "m", "--pieces", "99"], "--pieces"),
        (["run", "toy-lengths", "--model", "m", "--unit", "miles"], "--unit"),
        (["run", "toy-lengths", "--model", "m", "--layers", "one"], "is not of the form INT,…"),
        (["run", "toy-lengths", "--model", "m", "--fctor", "1"], "--fctor"),
        (["run", "toy-lengths", "--model", "m"], "needs a task; none was given"),
        (["run", "toy-lengths", "--model", "m", "--task", "mrpcc"], "mrpc"),
        (["run", "toy-lengths", "--model", "m", "--task", "a", "--corpus", "b"], "--corpus"),
        (
            ["run", "paraphrased-reading", "--held-out", "1"],
            "'--held-out' option of paraphrased",
        ),
        (["claims", "show", "toy.words-are-lon"], "Did you mean 'toy.words-are-long'?"),
        (["show", "ffff", "--store", "memory://empty"], "no finished result 'ffff'"),
        (["export", "ffff", "--format", "doc", "--to", "x"], "--format"),
        (["lst"], "list"),
    ],
)
def test_wrong_input_is_answered_with_exit_2(arguments: list[str], text: str | None) -> None:
    shown = bertology(*arguments, code=2)
    assert text is None or text in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ("train_split", "Asked", "hold texts", "x"),
            "'--train-split' option of ask must hold",
        ),
        (("train_split", "a reader", "hold texts", "dev"), "'--train-split' option of ask must"),
        # A part of the work has a parameter of the same name, with a value of its own.
        (("train_split", "a reader", "hold texts", "x"), "'train_split' parameter of a reader"),
        (("texts, top", "ask", "agree", ""), "'TEXTS, --at-most' option"),
        (("top", "ask", "be left out with train_split", 1), "be left out with --train-split"),
        (("other", "ask", "be whole", 1), "'other' parameter of ask"),
    ],
)
def test_errors_name_the_option_that_was_typed(error: tuple[Any, ...], said: str) -> None:
    @dataclass(frozen=True)
    class Asked:
        texts: str = argument("Texts.")
        train_split: str = parameter("train", "A split.")
        top: int = parameter(3, "How many.", option="at-most")

    given = {"texts": "a", "train_split": "dev", "top": 3}
    shown = in_options(ParameterError(*error), "ask", [Asked], given)
    assert said in str(shown)
    assert str(shown).endswith(f" Got {error[-1]!r} instead.")


def test_an_error_in_the_model_is_a_message(world: ToyWorld, tmp_path: Path) -> None:
    asked = ["--task", world.corpus, "--store", tmp_path / "r"]
    shown = bertology("run", "toy-lengths", "--model", tmp_path / "no", *asked, code=2)
    assert "There is no model folder" in shown


def test_ctrl_c_says_the_command_that_resumes(
    world: ToyWorld, tmp_path: Path, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAULT", "part-1=interrupt")
    shown = run_toy(world, tmp_path / "r", "--factor", 3, code=130)
    assert "1 of 4 parts" in shown
    command = f"bertology run toy-lengths --model {world.model} --task {world.corpus}"
    assert f"Continue with: {command} --store {tmp_path / 'r'} --factor 3" in shown
    run_toy(world, tmp_path / "r", "--factor", 3)
    assert diary.attempts()["part-0"] == 1


def test_a_bug_is_short_unless_verbose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: object) -> list[str]:
        raise ZeroDivisionError("oops")

    monkeypatch.setenv("BERTOLOGY_VERBOSE", "0")
    monkeypatch.setattr(type(STUDIES), "names", broken)
    shown = bertology("studies", code=1)
    assert "Unexpected ZeroDivisionError: oops" in shown
    assert "run with -v: bertology -v studies" in shown
    done = CliRunner().invoke(app, ["-v", "studies"])
    assert done.exit_code == 1
    assert "Traceback" in done.output
    assert "ZeroDivisionError" in done.output


def test_nothing_heavy_is_imported_for_help() -> None:
    import subprocess

    code = (
        "import sys\n"
        "from bertology.cli.main import app\n"
        "for words in ['--help'], ['run', '--help']:\n"
        "    try: app(words, prog_name='bertology')\n"
        "    except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'torch', 'transformers', 'pandas', 'xarray', 'matplotlib', 'datasets', 'ray'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Examples:") == 2


def test_flags_have_no_type_in_the_help() -> None:
    for command in ("", "run", "run toy-lengths", "claims", "claims show", "export", "report"):
        assert "bool" not in bertology(*command.split(), "--help")


def test_the_newest_result_is_called_latest(world: ToyWorld, diary: Diary, tmp_path: Path) -> None:
    store = tmp_path / "results"
    empty = bertology("show", "latest", "--store", store, code=2)
    assert "no finished result 'latest'" in empty
    run_toy(world, store)
    time.sleep(1.1)  # results are dated to the second
    run_toy(world, store, "--limit", 3)
    assert "(3 examples drawn at random" in bertology("show", "latest", "--store", store)
    written = bertology("export", "latest", "--format", "csv", "--to", tmp_path, "--store", store)
    assert "toy-lengths-" in written


def test_examples_are_limited_by_one_option() -> None:
    """A study that draws 1,000 examples by itself takes as many as --limit asks for."""
    said = bertology("run", "token-classes", "--help")
    assert "--limit" in said
    assert "--examples" not in said
    kind = STUDIES.get("token-classes")
    assert following(kind, {"limit": 5000}) == {"examples": 5000}
    assert following(kind, {"limit": 200}) == following(kind, {}) == {}
    assert "--train-limit" in bertology("run", "fine-tuning-starts", "--help")


def documented_commands() -> list[str]:
    """Every command line of `bertology` in the blocks of README and pages."""
    root = Path(__file__).parents[2]
    found = []
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        for block in re.findall(
            r"^```(?:sh|bash)\n(.*?)^```", page.read_text("utf-8"), re.S | re.M
        ):
            lines = block.replace("\\\n", " ").splitlines()
            found += [line for line in lines if line.startswith("bertology ")]
    return found


def test_commands_in_the_pages_have_options_that_exist() -> None:
    """Pages told readers to give --examples, which no command takes."""
    known: dict[tuple[str, ...], Any] = {(): get_command(app)}  # making one takes a while
    for line in dict.fromkeys(documented_commands()):
        words = shlex.split(re.split(r" [|>] ", line)[0], comments=True)[1:]
        command, path = known[()], tuple[str, ...]()
        while words and hasattr(command, "get_command") and not words[0].startswith("-"):
            path = (*path, words.pop(0))
            if path not in known:
                known[path] = command.get_command(Context(command), path[-1])
            command = known[path]
        try:
            command.make_parser(Context(command)).parse_args(words)
        except Exception as error:
            raise AssertionError(line) from error
