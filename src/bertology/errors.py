"""Every error a user can meet, one tree, each with a message that mends.

    BertologyError                    exit 2
    ├── UnknownNameError              a model, task, study, site, claim … nobody knows by that name
    ├── ParameterError                a value of the right name and the wrong kind or range
    ├── ModelError                    a checkpoint that is missing, broken or unsafe
    ├── DataError                     a file, column, label or text that cannot be used
    ├── CapabilityError               the model or corpus cannot give what the study needs
    ├── StoreError                    results cannot be written or read
    │   ├── ResultNotFoundError
    │   └── SchemaVersionError
    ├── JobError                      work that failed after all retries
    ├── MissingExtraError             an optional dependency is not installed
    └── InterruptedRunError           Ctrl-C or TERM; finished parts are kept (exit 130)

A message says what was given, what would be right, the nearest valid names, and the one
command that mends it. The command line prints it without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from difflib import get_close_matches

_SHOWN = 16  # names that a message lists at most


class BertologyError(Exception):
    """The root of the tree: a problem in one sentence and, where there is one, its mend."""

    exit_code = 2

    def __init__(self, problem: str, *, hint: str | None = None) -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(problem if hint is None else f"{problem}\n{hint}")

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (worker processes, Ray); keep problem and hint apart.
        return _rebuild, (type(self), self.problem, self.hint, self.__dict__)


def _rebuild(
    kind: type[BertologyError], problem: str, hint: str | None, state: dict[str, object]
) -> BertologyError:
    error = kind.__new__(kind)
    BertologyError.__init__(error, problem, hint=hint)
    error.__dict__.update(state)
    return error


class UnknownNameError(BertologyError):
    """No `kind` is called `name`; names close to it are offered."""

    def __init__(
        self, kind: str, name: str, choices: Iterable[str], *, hint: str | None = None
    ) -> None:
        self.kind, self.name, self.choices = kind, name, sorted(choices)
        holding = [c for c in self.choices if len(name) > 3 and name in c]
        near = holding[:3] or get_close_matches(name, self.choices, n=3, cutoff=0.5)
        if near:
            mend = "Did you mean " + " or ".join(repr(n) for n in near) + "?"
        elif self.choices:
            shown = ", ".join(self.choices[:_SHOWN])
            mend = f"Known: {shown}" + (", …" if len(self.choices) > _SHOWN else ".")
        else:
            mend = "" if hint else f"No {kind} is registered."
        super().__init__(f"Unknown {kind} {name!r}.", hint=f"{mend} {hint or ''}".strip())


class ParameterError(BertologyError):
    """A parameter outside what it may be; the command line says which option gives it."""

    name = of = must = got = ""  # where only the text came here, from another process

    def __init__(self, name: str, of: str, must: str, got: object) -> None:
        # `got` is kept as text: what was given may be a model, which errors should not carry about.
        self.name, self.of, self.must, self.got = name, of, must, repr(got)
        super().__init__(_refusal(name, of, must, self.got))

    def as_option(self, name: str, of: str, must: str) -> ParameterError:
        """The same in the words of whoever typed `name`."""
        found = copy(self)
        found.name, found.of, found.must = name, of, must
        BertologyError.__init__(found, _refusal(name, of, must, self.got), hint=self.hint)
        return found


def _refusal(name: str, of: str, must: str, got: str) -> str:
    kind = "option" if "--" in name else "parameter"
    return f"The {name!r} {kind} of {of} must {must}. Got {got} instead."


class ModelError(BertologyError):
    """A checkpoint that is missing, broken or unsafe to load."""


class DataError(BertologyError):
    """A file, column, label or text that cannot be used."""


class CapabilityError(BertologyError):
    """The model or the corpus cannot give what was asked; said before any work is done."""


class StoreError(BertologyError):
    """Results cannot be written or read."""


class ResultNotFoundError(StoreError):
    """No stored result answers to that name."""


class SchemaVersionError(StoreError):
    """A result written by a version of the format this release does not read."""


class JobError(BertologyError):
    """Work that failed after all retries."""


class MissingExtraError(BertologyError):
    """An optional dependency is not installed; the message names the exact install command."""

    def __init__(self, extra: str, *, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the optional extra {extra!r}.",
            hint=f"Install it with: pip install 'bertology[{extra}]'",
        )


class InterruptedRunError(BertologyError):
    """The user stopped a run; what was finished is kept and `hint` says how to go on."""

    exit_code = 130
