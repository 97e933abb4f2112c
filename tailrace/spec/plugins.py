# SPDX-License-Identifier: Apache-2.0
"""Plug-ins: Python files that register topologies, workloads, metrics, ... when they are imported.

    tailrace run --plugin DIR ...         every DIR/*.py, or one file; TAILRACE_PLUGINS=DIR:DIR does the same,
                                          and child processes inherit it
    [project.entry-points."tailrace.workloads"]      an installed package: a module for each name
    mine = "my_package.my_workload"

Before a name is looked up, plug-ins are loaded (`load`), once in each process. Loading runs their code; the
user asks for this by naming them. The command line, and the Python functions that plan and run experiments,
report an error in a plug-in on one line with its file and line (`blamed`).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, get_origin

import msgspec

from tailrace.spec.errors import Error, SpecError
from tailrace.spec.files import read_bytes
from tailrace.spec.text import one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

VARIABLE = "TAILRACE_PLUGINS"
"""The environment variable with folders and files to load, separated as in PATH."""

GROUPS = tuple(f"tailrace.{kind}" for kind in ("topologies", "workloads", "metrics", "schemes", "transports"))

BUILD = "build"
"""The folder beside a plug-in's file with its compiled P4 programs."""

MOST_FILES = 64
MOST_BYTES = 1 << 20
"""The largest file of a plug-in."""

_PREFIX = "tailrace_plugin_"

_PACKAGE = Path(__file__).resolve().parents[1]

_loaded: dict[Path, str] = {}
"""The SHA-256 of each file that was loaded."""

_packages: dict[str, str] = {}
"""The version of each package whose entry points were loaded."""

_modules: list[Path] = []
"""The file of each module that an entry point names."""

_done: list[str] = []
"""The values of VARIABLE for which loading is done."""


def use(paths: Iterable[Path]) -> None:
    """Adds folders and files to VARIABLE, so that `load` loads them, here and in every process started later.

    Raises:
        SpecError: there is no such folder or file.
    """
    wanted = [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
    for path in paths:
        text = str(path.resolve())
        if os.pathsep in text:
            raise SpecError(f"plug-in {path}: expected a path without {os.pathsep!r}")
        _files(Path(text))
        if text not in wanted:
            wanted.append(text)
    if wanted:
        os.environ[VARIABLE] = os.pathsep.join(wanted)


def load() -> None:
    """Loads installed plug-ins and those that VARIABLE names, if this has not been done.

    Raises:
        SpecError: a file cannot be loaded, or registers a name that is taken.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted in _done:
        return
    first = not _done
    # set before loading, because plug-ins that are being loaded look names up, too
    _done.append(wanted)
    try:
        if first:
            for point in _points():
                _load_point(point)
        for path in [Path(text) for text in wanted.split(os.pathsep) if text]:
            for file in _files(path):
                if file not in _loaded:
                    _load_file(file)
    except SpecError:
        _done.clear()
        raise


def _points() -> list[EntryPoint]:
    """The entry points of installed packages that name plug-ins."""
    if not any(map(_may_have_points, sys.path)):
        return []
    # imported late: it takes as long as a small network's switches
    from importlib.metadata import entry_points

    points = (point for group in GROUPS for point in entry_points(group=group))
    return sorted(points, key=lambda point: (point.group, point.name))


def _may_have_points(place: str) -> bool:
    """Whether a package in a folder of `sys.path` may have entry points for us; any archive may."""
    folder = Path(place)
    if folder.is_file():
        return True
    with suppress(OSError):
        return any(b"[tailrace." in file.read_bytes() for file in folder.glob("*.*-info/entry_points.txt"))
    return False


def builds() -> tuple[Path, ...]:
    """The folders that may have compiled P4 programs of plug-ins: `build` beside a file or module."""
    load()
    return tuple(dict.fromkeys(path.parent / BUILD for path in (*_loaded, *_modules)))


def digest() -> tuple[tuple[str, str], ...]:
    """The loaded plug-ins, each with its hash or version; results depend on them as on Tailrace's code."""
    load()
    files = sorted((path.name, sha256) for path, sha256 in _loaded.items())
    return (*files, *sorted(_packages.items()))


def loaded() -> tuple[str, ...]:
    """The loaded plug-ins: the paths of files, the names of packages."""
    load()
    return (*map(str, sorted(_loaded)), *sorted(_packages))


def options() -> list[str]:
    """The command line options that load the same files; installed packages need none."""
    load()
    return [argument for path in sorted(_loaded) for argument in ("--plugin", str(path.resolve()))]


@contextmanager
def expected(names: Iterable[str]) -> Iterator[None]:
    """Within the block, errors also list the plug-ins in `names` (`loaded()` of another process) that are not
    loaded here.

    Raises:
        SpecError: the block raises it.
    """
    try:
        yield
    except SpecError as error:
        missing = sorted(set(names) - set(loaded()))
        if not missing:
            raise
        problem = f"the network has plug-ins that are not loaded here ({VARIABLE}): {', '.join(missing)}"
        raise SpecError(f"{error}; {problem}") from error


@contextmanager
def blamed(what: str, *objects: object) -> Iterator[None]:
    """Within the block, an error that a plug-in causes is reported with the plug-in's file and line.

    Args:
        what: what was being done; the message begins with it.
        objects: objects that a plug-in may have defined.

    Raises:
        SpecError: a plug-in caused the error. Errors of the class Error, which Tailrace raises on purpose,
            stay as they are; if a plug-in or one of `objects` was involved, its file and line are added.
    """
    try:
        yield
    except Error as error:
        place = _plugin_frame(error) or next(filter(None, map(place_of, objects)), "")
        # an error that the plug-in itself raised is about the user's input, so it needs no place
        raised_by_plugin = any(_in_plugin(frame.f_code.co_filename) for frame in list(_frames(error))[:1])
        if place and not raised_by_plugin and place not in str(error):
            error.args = (f"{error} ({place})",)
        raise
    except BaseException as error:
        cause = blame(error, objects)
        if not cause:
            raise
        raise SpecError(f"{what}: {cause}") from error


def blame(error: BaseException, objects: Iterable[object] = ()) -> str:
    """The place in a plug-in that caused an error, and the error, on one line; empty if no plug-in caused it,
    if our code raised it on purpose, or if a signal ended the command.

    The place is the innermost frame within a plug-in's folder. If our code failed on a wrong value of a
    plug-in, the place is the definition of the innermost plug-in object that our code was working with.
    """
    kind = type(error)
    if isinstance(error, KeyboardInterrupt) or not (_loaded or _modules):
        return ""
    module = sys.modules.get(kind.__module__)
    # a plug-in can cause errors of Python's classes and of its classes, but not those of a library
    plugin_may_raise = kind.__module__ == "builtins" or _in_plugin(getattr(module, "__file__", None) or "")
    if isinstance(error, Error) or not (isinstance(error, Exception) or plugin_may_raise):
        return ""
    place = _plugin_frame(error)
    if (
        not place
        and plugin_may_raise
        and isinstance(error, Exception)
        and not isinstance(error, (OSError, MemoryError))
    ):
        used = (each for frame in _frames(error) for each in _objects(frame.f_locals.values()))
        place = next(filter(None, map(place_of, (*used, *objects))), "")
    return f"{place}: {_line_of(error)}" if place else ""


def place_of(defined: object) -> str:
    """File and line where a plug-in defines a function, a class or the class of an object; empty if no
    plug-in defines it.
    """
    if not (_loaded or _modules):  # a fast path: this is called for each flow of a run
        return ""
    return _place(defined if isinstance(defined, (type, FunctionType)) else type(defined))


@functools.cache
def _place(made: type | FunctionType) -> str:
    file = getattr(sys.modules.get(made.__module__), "__file__", None)
    if not file or not _in_plugin(file):
        return ""
    if isinstance(made, FunctionType):
        return f"{file}: line {made.__code__.co_firstlineno}"
    try:
        return f"{file}: line {inspect.getsourcelines(made)[1]}"
    except (OSError, TypeError):
        return str(file)


def given_by(maker: object, value: Any, kind: Any, what: str) -> Any:
    """Checks the type of a value that a plug-in returned; values of our code are returned unchanged.

    Args:
        maker: the function that returned the value, or the object whose method returned it.
        value: the returned value.
        kind: a class, of which the value must be an instance; or a tuple or generic type, such as list[int]:
            then the types of all parts are checked, too.
        what: the name of the method, for the message.

    Raises:
        SpecError: the value has another type.
    """
    place = place_of(maker)
    if not place:
        return value
    checks_class_only = get_origin(kind) is None and not issubclass(kind, tuple)
    try:
        if checks_class_only and not isinstance(value, kind):
            raise TypeError(f"expected {kind.__name__}")
        if isinstance(value, msgspec.Struct):
            msgspec.convert(msgspec.to_builtins(value), type(value))
        return value if checks_class_only else msgspec.convert(msgspec.to_builtins(value), kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise SpecError(f"{place}: {what} returned {one_line(repr(value), 80)}: {error}") from None


def _frames(error: BaseException) -> Iterator[FrameType]:
    """The frames of an error's traceback, the innermost first."""
    return reversed([frame for frame, _ in traceback.walk_tb(error.__traceback__)])


def _plugin_frame(error: BaseException | None) -> str:
    """File and line of the innermost frame of a plug-in in the traceback of an error or of its causes; for a
    syntax error in a plug-in, the place of the error.
    """
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        if isinstance(error, SyntaxError) and error.lineno is not None and _in_plugin(error.filename or ""):
            return f"{error.filename}: line {error.lineno}"
        frames = traceback.extract_tb(error.__traceback__)
        for frame in reversed(frames):
            if _in_plugin(frame.filename):
                return f"{frame.filename}: line {frame.lineno}"
        error = error.__cause__ or error.__context__
    return ""


@functools.cache
def _in_plugin(name: str) -> bool:
    """Whether a file is in a plug-in's folder, but not part of Tailrace or of a package installed there."""
    path = Path(name)
    if not name or path.is_relative_to(_PACKAGE):
        return False
    for file in (*_loaded, *_modules):
        folder = file.parent
        if path == file:
            return True
        installed = {"site-packages", "dist-packages"}
        if path.is_relative_to(folder) and not installed & {folder.name, *path.relative_to(folder).parts}:
            return True
    return False


def _forget() -> None:
    """Clears the caches, which loading another plug-in makes invalid."""
    _in_plugin.cache_clear()
    _place.cache_clear()


def _objects(values: Iterable[object]) -> Iterator[object]:
    """These objects, and the values in the fields of objects of our classes."""
    for value in list(values):
        yield value
        if type(value).__module__.startswith(f"{_PACKAGE.name}."):
            for fields in ("__struct_fields__", "__dataclass_fields__", "__dict__"):
                yield from (getattr(value, name, None) for name in getattr(value, fields, ()))


def _files(path: Path) -> list[Path]:
    """The plug-in files of a folder, or the file itself.

    Raises:
        SpecError: there is no such folder or file, or the folder contains no plug-in or too many.
    """
    if path.is_dir():
        files = sorted(file for file in path.glob("*.py") if not file.name.startswith("_"))
        if not 1 <= len(files) <= MOST_FILES:
            expected = f"expected 1 to {MOST_FILES} files NAME.py"
            raise SpecError(f"plug-in {path}: {expected}, found {len(files)}")
        return files
    if path.suffix != ".py" or not path.is_file():
        raise SpecError(f"plug-in {path}: expected a folder or a file NAME.py")
    return [path]


def _load_file(path: Path) -> None:
    try:
        source = read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise SpecError(f"plug-in {path}: {error.strerror or error}") from None
    digest = hashlib.sha256(source).hexdigest()
    name = f"{_PREFIX}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"plug-in {path}: expected a file of Python")
    module = importlib.util.module_from_spec(spec)
    # registered before it runs, because dataclasses look up their module
    sys.modules[name] = module
    _loaded[path] = digest
    _forget()
    try:
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - the user asked to run the plug-in
    except BaseException as error:
        place = _plugin_frame(error)
        del sys.modules[name], _loaded[path]
        # a signal that ends the command is no mistake of the plug-in
        if not isinstance(error, (Exception, SystemExit)):
            raise
        raise SpecError(f"plug-in {place or path}: {_line_of(error)}") from error


def _load_point(point: EntryPoint) -> None:
    try:
        spec = importlib.util.find_spec(point.module)
        if spec is not None and spec.origin is not None:
            _modules.append(Path(spec.origin))
            _forget()
        point.load()
    except (Exception, SystemExit) as error:
        package = point.dist.name if point.dist is not None else "?"
        described = f"{package} ({point.group} {point.name} = {point.value})"
        place = _plugin_frame(error)
        raise SpecError(f"plug-in {described}: {place}{': ' if place else ''}{_line_of(error)}") from error
    if point.dist is not None:
        _packages[point.dist.name] = point.dist.version


def _line_of(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, Error):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__)
