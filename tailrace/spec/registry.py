# SPDX-License-Identifier: Apache-2.0
"""Registries of the names in specs. A spec is a string `name:key=value,…`. For each name a registry has a
class, whose annotated fields are the keys (keys.py). The decorator `register` adds a class to a registry:

    FAMILIES: Registry[Family] = Registry("topology")

    @FAMILIES.register("ring", "switches in a ring")
    @dataclass(frozen=True, slots=True)
    class Ring: ...

    FAMILIES.parse("ring:switches=5")         returns a Spec, and a Ring with these values

Classes of keys are dataclasses or msgspec structs, and are called structs below. Plug-ins, which are loaded
later (plugins.py), use the same decorator.
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

_PACKAGE = f"{__name__.partition('.')[0]}."
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class Registration(Generic[T]):
    """A name, the struct of its keys, and a line that describes the name to users."""

    name: str
    struct: type[T]
    help: str


def check_name(what: str, name: str) -> None:
    """Checks that a name can be used in specs, folders and columns.

    Raises:
        SpecError: the name cannot be used.
    """
    if _NAME.fullmatch(name) is None:
        raise SpecError(
            f"{what} {name[:80]!r}: expected a name of at most 40 lower-case letters, digits, - and _"
        )


class Registry(Generic[T]):
    """All registered structs of one kind, such as schemes, by name.

    what: the kind of the names, such as `scheme`; messages begin with it
    also: structs with further keys that every name has; `parse` accepts these keys, `common` reads them
    files: the form of a file name that users may give instead of a spec, such as `FILE`; for messages
    methods: methods that each struct must have, with their number of arguments without `self`
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
        """A decorator that registers a struct.

        Args:
            name: the name in specs.
            help: one line that describes the name to users.

        Raises:
            SpecError: the name is invalid or taken, or the struct lacks fields or methods.
        """
        check_name(self._what, name)

        def add(struct: Registered) -> Registered:
            before = self._entries.get(name)
            if before is not None:
                raise SpecError(
                    f"{self._what} {name!r} is registered twice: by {before.struct.__module__} and by "
                    f"{struct.__module__}"
                )
            # a test checks structs of this package: evaluating all their annotations takes 0.1 s
            if not struct.__module__.startswith(_PACKAGE):
                self.check(name, struct)
            self._entries[name] = Registration(name, struct, help)
            return struct

        return add

    def check(self, name: str, struct: type) -> None:
        """Raises SpecError if a class is no struct, lacks a method, or has two keys of the same name."""
        what = f"{self._what} {name!r}: {struct.__name__}"
        if not has_fields(struct):
            raise SpecError(f"{what} is no dataclass and no msgspec.Struct")
        for method, arguments in self._methods.items():
            try:
                inspect.signature(getattr(struct, method)).bind(*range(arguments + 1))
            except AttributeError:
                raise SpecError(f"{what} has no method {method}") from None
            except TypeError:
                raise SpecError(f"{what}.{method} must take {arguments} arguments besides self") from None
        names = [key.name for key in keys_of(*dict.fromkeys((struct, *self._also)))]
        duplicate = next((key for key in names if names.count(key) > 1), None)
        if duplicate is not None:
            raise SpecError(f"{what} has two keys of the name {duplicate!r}")

    def __iter__(self) -> Iterator[Registration[T]]:
        """All registrations, in order of names."""
        return iter([self._entries[name] for name in self.names])

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in alphabetical order, whatever the order of loading."""
        plugins.load()
        return tuple(sorted(self._entries))

    def entry(self, name: str) -> Registration[T]:
        """The registration of a name.

        Raises:
            SpecError: the name is not registered.
        """
        plugins.load()
        entry = self._entries.get(name)
        if entry is None:
            raise SpecError(f"{self._what} {unknown(name, self.names, self._files)}")
        return entry

    def keys(self, name: str) -> tuple[Key, ...]:
        """The keys of a name, including the keys that all names have."""
        return keys_of(self.entry(name).struct, *self._also)

    def parse(self, text: str | Spec) -> tuple[Spec, T]:
        """The spec split into name and options, and an instance of the name's struct with these values.

        Raises:
            SpecError: the name is unknown, or an option is invalid; the message says which.
        """
        return self.read(parse(text, self._what))

    def read(self, spec: Spec) -> tuple[Spec, T]:
        """Does the same as `parse` for a spec that is already split into name and options."""
        return spec, read(spec, self.entry(spec.name).struct, self._also)

    def spec_of(self, value: object) -> str:
        """The spec string of `value`, an instance of a registered struct; a string is returned unchanged.

        Raises:
            SpecError: the value is neither of these, or no spec string describes it.
        """
        if isinstance(value, str):
            return value
        entry = next((entry for entry in self if entry.struct is type(value)), None)
        if entry is None:
            kinds = ", ".join(entry.struct.__name__ for entry in self)
            raise SpecError(
                f"{self._what}: expected a string or one of {kinds}, found {type(value).__name__}"
            )
        spec = Spec(entry.name, write(value), self._what)
        if read(spec, entry.struct, self._also) != value:
            raise SpecError(f"{spec.title}: {value!r} cannot be written as a spec; expected a string")
        return str(spec)

    def common(self, spec: Spec, struct: type[Common]) -> Common:
        """An instance of `struct`, one of the structs `also`, with the values of a valid spec."""
        return read(spec, struct, [self._entries[spec.name].struct, *self._also])


def load_folder(package: str, inner: str = "") -> None:
    """Imports every module of a package, so that the classes defined there are registered.

    Args:
        package: name of the package.
        inner: name of the module to import from each subpackage, if that module exists; "": the subpackage
            itself is imported.
    """
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        name = f"{module.name}.{inner}" if module.ispkg and inner else module.name
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
