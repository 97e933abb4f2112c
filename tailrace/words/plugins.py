# SPDX-License-Identifier: Apache-2.0
"""What is added from outside: files that register topologies, workloads, metrics when they are imported.

    tailrace run --plugin DIR ...         every DIR/*.py, or one file; TAILRACE_PLUGINS=DIR:DIR does the same,
                                          and hands it on to processes that are started
    [project.entry-points."tailrace.workloads"]      an installed package: a module for each name
    mine = "my_package.my_workload"

Whatever looks for a name has them loaded first (`load`), once in each process. Loading runs the code in them:
that is the user's own act. What goes wrong in them is told in one line that names the file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from tailrace.words.errors import SpecError
from tailrace.words.files import read_bytes
from tailrace.words.text import one_line

VARIABLE = "TAILRACE_PLUGINS"
"""Folders and files to load, separated as those of PATH are."""

GROUPS = tuple(f"tailrace.{kind}" for kind in ("topologies", "workloads", "metrics", "schemes", "transports"))

BUILD = "build"
"""The folder beside a file in which its compiled P4 programs are."""

MOST_FILES = 64
MOST_BYTES = 1 << 20
"""Of a file."""

_PREFIX = "tailrace_plugin_"

_loaded: dict[Path, str] = {}
"""The SHA-256 of each file that was loaded."""

_packages: dict[str, str] = {}
"""The version of each package whose entry points were loaded."""

_modules: list[Path] = []
"""The file of each module that an entry point names."""

_done: list[str] = []
"""What VARIABLE was when entry points and it were loaded."""


def use(paths: Iterable[Path]) -> None:
    """Have these folders and files loaded, here and in every process that is started from now on.

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
    """Load what is installed and what VARIABLE names, where that has not been done.

    Raises:
        SpecError: a file cannot be loaded, or registers what is taken.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted in _done:
        return
    first = not _done
    # what is loaded looks for names itself
    _done.append(wanted)
    try:
        if first:
            for point in sorted(
                (point for group in GROUPS for point in entry_points(group=group)),
                key=lambda point: (point.group, point.name),
            ):
                _load_point(point)
        for path in [Path(text) for text in wanted.split(os.pathsep) if text]:
            for file in _files(path):
                if file not in _loaded:
                    _load_file(file)
    except SpecError:
        _done.clear()
        raise


def builds() -> tuple[Path, ...]:
    """The folders with compiled programs that came with what was loaded: `build` beside a file or module."""
    load()
    found = dict.fromkeys(path.parent / BUILD for path in (*_loaded, *_modules))
    return tuple(path for path in found if path.is_dir())


def digest() -> tuple[tuple[str, str], ...]:
    """What was loaded, with a hash or version of it each; it decides results as our own code does."""
    load()
    files = sorted((path.name, found) for path, found in _loaded.items())
    return (*files, *sorted(_packages.items()))


def loaded() -> tuple[str, ...]:
    """What was loaded, as others have to name it: the paths of files, the names of packages."""
    load()
    return (*map(str, sorted(_loaded)), *sorted(_packages))


def options() -> list[str]:
    """The options of a command that loads the same files; installed packages need none."""
    load()
    return [word for path in sorted(_loaded) for word in ("--plugin", str(path.resolve()))]


@contextmanager
def expected(names: Iterable[str]) -> Iterator[None]:
    """Within the block, an error where something of `loaded` elsewhere is missing here says what.

    Raises:
        SpecError: as the block does.
    """
    try:
        yield
    except SpecError as error:
        missing = sorted(set(names) - set(loaded()))
        if not missing:
            raise
        told = f"the network has plug-ins that are not loaded here ({VARIABLE}): {', '.join(missing)}"
        raise SpecError(f"{error}; {told}") from error


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Within the block, an error that code from outside raises is told in a line that names its file.

    Raises:
        SpecError: there was one; ours pass as they are.
    """
    try:
        yield
    except SpecError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename) in _loaded]
        if not own:
            raise
        raise SpecError(f"{what}: {own[-1].filename}: line {own[-1].lineno}: {_line_of(error)}") from error


def _files(path: Path) -> list[Path]:
    """The files of a folder, or the file.

    Raises:
        SpecError: there is none.
    """
    if path.is_dir():
        found = sorted(file for file in path.glob("*.py") if not file.name.startswith("_"))
        if not 1 <= len(found) <= MOST_FILES:
            expected = f"expected 1 to {MOST_FILES} files NAME.py"
            raise SpecError(f"plug-in {path}: {expected}, found {len(found)}")
        return found
    if path.suffix != ".py" or not path.is_file():
        raise SpecError(f"plug-in {path}: expected a folder or a file NAME.py")
    return [path]


def _load_file(path: Path) -> None:
    try:
        source = read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise SpecError(f"plug-in {path}: {error.strerror or error}") from None
    found = hashlib.sha256(source).hexdigest()
    name = f"{_PREFIX}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"plug-in {path}: expected a file of Python")
    module = importlib.util.module_from_spec(spec)
    # before it runs: dataclasses look their module up
    sys.modules[name] = module
    _loaded[path] = found
    try:
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - this is what loading is
    except BaseException as error:
        del sys.modules[name], _loaded[path]
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        raise SpecError(f"plug-in {path}: {_where(error, path)}{_line_of(error)}") from error


def _load_point(point: EntryPoint) -> None:
    try:
        point.load()
        file = sys.modules[point.module].__file__
        if file is not None:
            _modules.append(Path(file))
    except Exception as error:
        package = point.dist.name if point.dist is not None else "?"
        named = f"{package} ({point.group} {point.name} = {point.value})"
        raise SpecError(f"plug-in {named}: {_line_of(error)}") from error
    if point.dist is not None:
        _packages[point.dist.name] = point.dist.version


def _where(error: BaseException, path: Path) -> str:
    """The line of a file in which an error was raised."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: "
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {own[-1].lineno}: " if own else ""


def _line_of(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, SpecError):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__)
