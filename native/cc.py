# SPDX-License-Identifier: Apache-2.0
"""Compiles C with the machine's compiler into shared objects, cached by the hash of all inputs."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

HEADERS = Path(__file__).parent / "runtime"
FLAGS = ("-std=gnu11", "-O2", "-g1", "-fPIC", "-shared", "-fno-strict-aliasing", "-fvisibility=default")
SANITIZE_FLAGS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)


class BuildError(Exception):
    """The C compiler is missing or failed; one line."""


def cache_root() -> Path:
    """Where shared objects are kept: ``$TAILRACE_CACHE``, else the user's cache folder."""
    named = os.environ.get("TAILRACE_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tailrace"


def compiler() -> Path:
    """The C compiler: ``$CC`` or ``cc``.

    Raises:
        BuildError: there is none.
    """
    name = os.environ.get("CC", "cc")
    found = shutil.which(name)
    if found is None:
        raise BuildError(f"no C compiler: {name} is not on PATH (Debian, Ubuntu: install gcc and libc6-dev)")
    return Path(found).resolve()


@functools.cache
def _compiler_identity(path: Path) -> str:
    stat = path.stat()
    return f"{path.name} {stat.st_size} {stat.st_mtime_ns}"


@functools.cache
def files_digest(folder: Path, pattern: str) -> str:
    """A hash of all files of a folder that match a pattern, by name and content."""
    h = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        h.update(path.relative_to(folder).as_posix().encode() + b"\0")
        h.update(path.read_bytes())
    return h.hexdigest()


def flags(sanitize: bool) -> tuple[str, ...]:
    """Compiler flags of a shared object."""
    return (*FLAGS, *SANITIZE_FLAGS) if sanitize else FLAGS


def cached(
    name: str,
    inputs: Sequence[bytes | str],
    sources: Callable[[], Sequence[Path | str]],
    include: Sequence[Path] = (HEADERS,),
    *,
    sanitize: bool = False,
    cache_dir: Path | None = None,
    link: Sequence[str] = (),
) -> Path:
    """The shared object made from some inputs, compiled unless it is in the cache.

    Args:
        name: what the object is called, without suffix.
        inputs: everything the object depends on; their hash names it.
        sources: called when it must be made: paths of C files, or C text.
        include: folders for ``#include``.
        sanitize: with address and undefined-behaviour sanitizers.
        cache_dir: instead of ``cache_root()``.
        link: further arguments for the linker.

    Raises:
        BuildError: no compiler, or it failed.
    """
    cc = compiler()
    # ASAN=1 makes every object of a process with the sanitizers (`make test ASAN=1`)
    sanitize = sanitize or os.environ.get("ASAN") == "1"
    h = hashlib.sha256()
    for part in (_compiler_identity(cc), " ".join(flags(sanitize)), *link, *inputs):
        h.update(part.encode() if isinstance(part, str) else part)
        h.update(b"\0")
    folder = cache_dir or cache_root()
    target = folder / f"{name}-{h.hexdigest()[:32]}.so"
    if target.exists():
        return target
    _compile(cc, sources(), include, target, (*flags(sanitize),), tuple(link))
    return target


def _compile(
    cc: Path,
    sources: Sequence[Path | str],
    include: Sequence[Path],
    target: Path,
    options: tuple[str, ...],
    link: tuple[str, ...],
) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-")
    except OSError as e:
        raise BuildError(f"cannot write the cache {target.parent}: {e.strerror}") from None
    with scratch:
        files = []
        for i, source in enumerate(sources):
            if isinstance(source, str):
                path = Path(scratch.name) / f"source{i}.c"
                path.write_text(source)
                files.append(path)
            else:
                files.append(source)
        made = Path(scratch.name) / "made.so"
        command = [str(cc), *options, *(f"-I{p}" for p in include), "-o", str(made)]
        command += [*map(str, files), *link]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr[:200])
            raise BuildError(f"{cc.name} failed on {target.name}: {first.strip()}")
        # an atomic step, so that two processes that make the same object do not meet
        made.replace(target)


def shared_library(
    name: str,
    sources: Sequence[Path],
    include: Sequence[Path] = (HEADERS,),
    *,
    sanitize: bool = False,
    link: Sequence[str] = (),
) -> Path:
    """A library from C files, cached by their content and that of all headers beside them."""
    inputs: list[bytes | str] = [p.name + "\0" + p.read_text() for p in sources]
    inputs += [files_digest(folder, "*.h") for folder in include]
    return cached(name, inputs, lambda: list(sources), include, sanitize=sanitize, link=link)
