"""Names to things, found lazily: built in, or brought by another package's entry point.

A registry lists names without importing what they name, so that `bertology --help` stays fast,
and imports a thing only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from bertology.errors import UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """A lazy mapping of names to objects of one `kind`.

    `builtin` gives `name -> "package.module:attribute"`; installed packages add to it through
    the entry-point `group`. `register` adds one at run time (tests, notebooks). `elsewhere` says of
    a name that is none of these where it is found, or nothing. `load` makes the object of a
    target that is no attribute of a module.
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str,
        builtin: Callable[[], Mapping[str, str]],
        elsewhere: Callable[[str], str] = lambda name: "",
        load: Callable[[str], T] | None = None,
    ) -> None:
        self._load: Callable[[str], T] = load or _attribute
        self.kind, self.group, self._elsewhere = kind, group, elsewhere
        self._builtin = builtin
        self._loaded: dict[str, T] = {}
        self._targets: dict[str, str] | None = None

    def _known(self) -> dict[str, str]:
        if self._targets is None:
            brought = {e.name: e.value for e in entry_points(group=self.group)}
            # Built-in names win: a plugin may add, never silently replace.
            self._targets = {**brought, **self._builtin()}
        return self._targets

    def names(self) -> list[str]:
        """All names, sorted, without importing anything they name."""
        return sorted({*self._known(), *self._loaded})

    def __contains__(self, name: str) -> bool:
        return name in self._loaded or name in self._known()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def get(self, name: str) -> T:
        """The thing called `name`; an UnknownNameError offers the nearest names."""
        if name not in self._loaded:
            known = self._known()
            if name not in known and (hint := self._elsewhere(name)):
                raise UnknownNameError(self.kind, name, (), hint=hint)
            if name not in known:
                raise UnknownNameError(self.kind, name, self.names())
            self._loaded[name] = self._load(known[name])
        return self._loaded[name]

    def register(self, name: str, thing: T) -> T:
        """Add `thing` under `name` for the life of this process."""
        self._loaded[name] = thing
        return thing


def _attribute(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
