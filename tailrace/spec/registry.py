# SPDX-License-Identifier: Apache-2.0
"""Registries of what specs name: a struct of keys (keys.py) under a name, registered where it is defined.

    FAMILIES: Registry[Family] = Registry("topology")

    @FAMILIES.register("ring", "switches in a ring")
    @dataclass(frozen=True, slots=True)
    class Ring: ...

    FAMILIES.parse("ring:switches=5")         the spec, and a Ring

A module that is loaded later registers in the same way: plugins.py.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from tailrace.spec import plugins
from tailrace.spec.errors import SpecError
from tailrace.spec.keys import Key, has_fields, keys_of, read, write
from tailrace.spec.spec_string import Spec, parse
from tailrace.spec.suggest import unknown

T = TypeVar("T")
Common = TypeVar("Common")
Registered = TypeVar("Registered", bound=type)

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class Registration(Generic[T]):
    """A name, the struct of its keys, and what it is, for people."""

    name: str
    struct: type[T]
    help: str


def check_name(what: str, name: str) -> None:
    """Refuses names that specs, folders and columns cannot have.

    Raises:
        SpecError: it is such a name.
    """
    if _NAME.fullmatch(name) is None:
        raise SpecError(f"{what} {name[:80]!r}: expected a name of at most 40 small letters, digits, - and _")


class Registry(Generic[T]):
    """All things of one kind, by name.

    what: the kind, for messages
    also: structs of keys that all of them have, which others read
    files: what a file instead of a name ends in, such as `FILE.csv`
    methods: what each of them must have, with the number of arguments beside itself
    """

    def __init__(
        self,
        what: str,
        also: Sequence[type] = (),
        files: str = "",
        methods: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._what = what
        self._methods = methods
        self._also = tuple(also)
        self._files = files
        self._entries: dict[str, Registration[T]] = {}

    def register(self, name: str, help: str) -> Callable[[Registered], Registered]:  # noqa: A002
        """Register a struct; the function is a decorator of it.

        Args:
            name: its name in specs.
            help: one line about it.

        Raises:
            SpecError: it is no name, or something else has it, or the struct is none of this kind.
        """
        check_name(self._what, name)

        def add(struct: Registered) -> Registered:
            before = self._entries.get(name)
            if before is not None:
                raise SpecError(
                    f"{self._what} {name!r} is registered twice: by {before.struct.__module__} and by "
                    f"{struct.__module__}"
                )
            self._check(name, struct)
            self._entries[name] = Registration(name, struct, help)
            return struct

        return add

    def _check(self, name: str, struct: type) -> None:
        """Refuses a struct without its methods, or with two keys of one name."""
        what = f"{self._what} {name!r}: {struct.__name__}"
        if not has_fields(struct):
            raise SpecError(f"{what} is no dataclass and no msgspec.Struct")
        for method, arguments in self._methods.items():
            try:
                inspect.signature(getattr(struct, method)).bind(*range(arguments + 1))
            except AttributeError:
                raise SpecError(f"{what} has no method {method}") from None
            except TypeError:
                raise SpecError(f"{what}.{method} must take {arguments} arguments beside itself") from None
        names = [key.name for key in keys_of(*dict.fromkeys((struct, *self._also)))]
        twice = next((each for each in names if names.count(each) > 1), None)
        if twice is not None:
            raise SpecError(f"{what} has two keys of the name {twice!r}")

    def remove(self, name: str) -> None:
        """Forget a name, as tests do with what they have registered."""
        self._entries.pop(name, None)

    def __iter__(self) -> Iterator[Registration[T]]:
        """All of them, by name."""
        return iter([self._entries[name] for name in self.names])

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in alphabetical order: what is loaded first does not matter."""
        plugins.load()
        return tuple(sorted(self._entries))

    def entry(self, name: str) -> Registration[T]:
        """What has a name.

        Raises:
            SpecError: nothing has.
        """
        plugins.load()
        entry = self._entries.get(name)
        if entry is None:
            raise SpecError(f"{self._what} {unknown(name, self.names, self._files)}")
        return entry

    def keys(self, name: str) -> tuple[Key, ...]:
        """The keys of a name, those that all have among them."""
        return keys_of(self.entry(name).struct, *self._also)

    def parse(self, text: str | Spec) -> tuple[Spec, T]:
        """The spec, and the struct of its keys.

        Raises:
            SpecError: an unknown name, or a bad option; one line says which.
        """
        return self.read(parse(text, self._what))

    def read(self, spec: Spec) -> tuple[Spec, T]:
        """The same for a spec that is split already."""
        return spec, read(spec, self.entry(spec.name).struct, self._also)

    def spec_of(self, thing: object) -> str:
        """The spec string of a registered struct; a text is returned as it is.

        Raises:
            SpecError: it is neither, or no spec describes it.
        """
        if isinstance(thing, str):
            return thing
        entry = next((entry for entry in self if entry.struct is type(thing)), None)
        if entry is None:
            kinds = ", ".join(entry.struct.__name__ for entry in self)
            raise SpecError(f"{self._what}: expected a text or one of {kinds}, found {type(thing).__name__}")
        spec = Spec(entry.name, write(thing), self._what)
        if read(spec, entry.struct, self._also) != thing:
            raise SpecError(f"{spec.title}: {thing!r} cannot be written as a spec; expected a text")
        return str(spec)

    def common(self, spec: Spec, struct: type[Common]) -> Common:
        """The values of the keys that all have, of a spec that was read."""
        return read(spec, struct, [self._entries[spec.name].struct, *self._also])


def load_folder(package: str, inner: str = "") -> None:
    """Import every module of a package, so that all that registers itself there is registered.

    Args:
        package: its name.
        inner: the module of this name of every package in it; those without it are left out.
    """
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        name = f"{module.name}.{inner}" if module.ispkg and inner else module.name
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
