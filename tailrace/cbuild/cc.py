# SPDX-License-Identifier: Apache-2.0
"""Compiles C with the machine's compiler into shared objects, cached by the hash of all inputs.

The compiler runs confined (`cbuild.confined`); what it makes is kept with its hash (`cbuild.cache`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import logging
import os
import platform
import re
import shlex
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tailrace.cbuild import cache, confined
from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.errors import BuildError, RefusedSourceError
from tailrace.spec.text import one_line

FLAGS = (
    "-std=gnu11",
    "-O3",
    # some processors would contract sums
    "-ffp-contract=off",
    "-g1",
    "-fPIC",
    "-shared",
    "-fno-strict-aliasing",
    "-fvisibility=default",
)
_OF_A_PROCESSOR = re.compile(
    r"(vendor_id|cpu family|model|model name|flags|Features|CPU implementer|CPU variant|CPU part)\s*:"
)
SANITIZE_FLAGS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)
_DETAIL_LINES = 40
_LITTLE_ROOM, _MUCH_ROOM = 1 << 18, 1 << 26
_MFD_EXEC = 0x10
# what this process has loaded, by hash and mode: every load would be another copy
_loaded: dict[tuple[bytes, int], ctypes.CDLL] = {}
_spellings = itertools.count(1)
_log = logging.getLogger("tailrace.switch.build")


@dataclass(frozen=True, slots=True)
class CCompiler:
    """A command that compiles, its program an absolute path, and what identifies it."""

    argv: tuple[str, ...]
    identity: str

    @property
    def name(self) -> str:
        """What people call it."""
        return Path(self.argv[0]).name


def compiler() -> CCompiler:
    """The C compiler: the command ``$CC``, or ``cc``.

    Raises:
        BuildError: there is none, or anybody may replace it.
    """
    given = os.environ.get("CC") or "cc"
    try:
        argv = shlex.split(given)
    except ValueError:
        argv = []
    if not argv or not given.isprintable():
        raise BuildError(f"CC is {given!r}, expected a command")
    cc_path = shutil.which(argv[0], path=None if "/" in argv[0] else confined.search_path())
    if cc_path is None:
        raise BuildError(
            f"no C compiler: {argv[0]} is not on PATH (Debian, Ubuntu: install gcc and libc6-dev)"
        )
    # not resolved: ccache and the like go by the name that they are called by
    path = Path(cc_path).absolute()
    return CCompiler((str(path), *argv[1:]), _identity(path, tuple(argv[1:])))


@functools.cache
def _identity(path: Path, argv: tuple[str, ...]) -> str:
    parts = [" ".join(argv)]
    for part in (path, *(Path(name) for argument in argv if (name := shutil.which(argument)) is not None)):
        file = part.resolve().stat()
        if file.st_mode & stat.S_IWOTH:
            raise BuildError(f"the compiler {part} is not trusted: everybody can write it")
        parts.append(f"{part.name} {file.st_size} {file.st_mtime_ns}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@functools.cache
def files_digest(folder: Path, pattern: str) -> str:
    """A hash of all files of a folder that match a pattern, by name and content."""
    h = hashlib.sha256()
    for path in sorted(folder.rglob(pattern)):
        h.update(path.relative_to(folder).as_posix().encode() + b"\0")
        h.update(path.read_bytes())
    return h.hexdigest()


@functools.cache
def processor() -> str:
    """What this machine's processor is and can do, as Linux says: code for it may not run on another."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""
    # of the first processor; clocks and the like change
    lines = [line for line in text.partition("\n\n")[0].splitlines() if _OF_A_PROCESSOR.match(line)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def flags(sanitize: bool) -> tuple[str, ...]:
    """Compiler flags of a shared object."""
    return (*FLAGS, *_march(), *(SANITIZE_FLAGS if sanitize else ()))


def _march() -> tuple[str, ...]:
    """Code for this very processor, where it has a name by which the cache keeps that apart."""
    known = platform.machine() in ("x86_64", "aarch64") and processor()
    return ("-march=native",) if known else ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a shared object is made. Whoever asks for it gets the one of the cache, or a new one.

    name: what the object is called, without suffix
    inputs: everything the object depends on; their hash names it
    sources: called when it must be made: paths of C files, or C text
    include: folders for `#include`
    sanitize: with address and undefined-behaviour sanitizers
    cache_dir: instead of `cache.root()`
    link: further arguments for the linker
    options: further options of the compiler
    """

    name: str
    inputs: Sequence[bytes | str]
    sources: Callable[[], Sequence[Path | str]]
    include: Sequence[Path] = (RUNTIME,)
    sanitize: bool = False
    cache_dir: Path | None = None
    link: Sequence[str] = ()
    options: Sequence[str] = ()

    def path(self) -> Path:
        """The object's file, verified, compiled unless it was in the cache.

        Raises:
            BuildError: no cache, no compiler, or it failed.
        """
        folder = cache.open_folder(self.cache_dir)
        return folder.path / self._verified(folder)[0]

    def is_made(self) -> bool:
        """Whether it is in the cache, so that nothing need be compiled.

        Raises:
            BuildError: no cache.
        """
        return self._cached(cache.open_folder(self.cache_dir)) is not None

    def load(self, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
        """The object in this process.

        Raises:
            BuildError: as for `path`, or the machine cannot load it.
        """
        with self.opened() as (path, digest):
            key = (digest, mode)
            if key not in _loaded:
                _loaded[key] = ctypes.CDLL(path, mode=mode)
            return _loaded[key]

    @contextmanager
    def opened(self) -> Iterator[tuple[str, bytes]]:
        """A path to load the verified object from, and a hash of it.

        It is a copy in memory, which nothing can change meanwhile or later. Where there can be none, it is
        the entry itself; also for sanitizers, which look for their symbols in the file.

        Raises:
            BuildError: as for `path`, or the block could not load it.
        """
        folder = cache.open_folder(self.cache_dir)
        name, content = self._verified(folder)
        copy = None if self._sanitized() else _memory_file(name, content)
        try:
            path = str(folder.path / name) if copy is None else f"/proc/self/fd/{copy}"
            yield _unused_path(path), hashlib.sha256(content).digest()
        except (OSError, ImportError) as error:
            raise BuildError(f"cannot load {folder.path / name}: {error}") from None
        finally:
            if copy is not None:
                os.close(copy)

    def _sanitized(self) -> bool:
        # ASAN=1 makes every object of a process with the sanitizers (`make test ASAN=1`)
        return self.sanitize or os.environ.get("ASAN") == "1"

    def _options(self) -> tuple[str, ...]:
        return (*flags(self._sanitized()), *self.options)

    def _stem(self) -> str:
        h = hashlib.sha256()
        machine = (os.uname().machine, processor())
        for part in (self.name, *machine, " ".join(self._options()), *self.link, *self.inputs):
            h.update(part.encode() if isinstance(part, str) else part)
            h.update(b"\0")
        return f"{self.name}-{h.hexdigest()[:32]}"

    def _cached(self, folder: cache.Folder) -> tuple[str, bytes] | None:
        """The object's name and content. Without a compiler, the one that was used last."""
        stem = self._stem()
        try:
            names = [f"{stem}-{compiler().identity}.so"]
        except BuildError:
            made = sorted(folder.path.glob(f"{stem}-*.so"), key=cache.used, reverse=True)
            names = [path.name for path in made]
        for name in names:
            content = folder.content(name)
            if content is not None:
                return name, content
        return None

    def _verified(self, folder: cache.Folder) -> tuple[str, bytes]:
        cached = self._cached(folder)
        if cached is not None:
            return cached
        cc = compiler()
        with folder.builder(f"{self._stem()}-{cc.identity}.so") as scratch:
            # another process may have built it meanwhile
            return self._cached(folder) or self._compile(cc, folder, scratch)

    def _compile(self, cc: CCompiler, folder: cache.Folder, scratch: Path) -> tuple[str, bytes]:
        name = f"{self._stem()}-{cc.identity}.so"
        try:
            files = self._files(scratch)
        except OSError as error:
            raise cache.cache_error(folder.path, error) from None
        made = scratch / "made.so"
        command = [*cc.argv, *self._options(), *(f"-I{path}" for path in self.include), "-o", str(made)]
        command += [*map(str, files), *self.link]
        read = confined.readable(Path(cc.argv[0]), [*self.include, *(path.parent for path in files)])
        run = confined.run(command, scratch, read)
        _log.debug("%s made with %s; confined by: %s", name, cc.name, ", ".join(run.active))
        if run.status != 0 or not made.is_file():
            raise failure(cc.name, self.name, folder, run)
        folder.put(name, made)
        content = folder.content(name)
        if content is None:
            raise BuildError(f"cannot load {self.name}: the cache {folder.path} changes all the time")
        return name, content

    def _files(self, scratch: Path) -> list[Path]:
        files = []
        for i, source in enumerate(self.sources()):
            if isinstance(source, str):
                path = scratch / f"source{i}.c"
                path.write_text(source)
                files.append(path)
            else:
                files.append(source)
        return files


def _memory_file(name: str, content: bytes) -> int | None:
    """A descriptor of a copy that can be loaded; None where there can be none."""
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112
        return None
    # kernels before 6.3 do not know MFD_EXEC
    for flag in (_MFD_EXEC, 0):
        try:
            copy = os.memfd_create(name[:200], os.MFD_CLOEXEC | flag)
        except OSError:
            continue
        try:
            with os.fdopen(os.dup(copy), "wb") as file:
                file.write(content)
        except OSError:  # a limit of file sizes, which holds in memory, too
            os.close(copy)
            return None
        return copy
    return None


def _unused_path(path: str) -> str:
    """The absolute path, spelled as never before: the loader knows libraries by path, and paths recur."""
    return "".join("/." if bit == "1" else "/" for bit in f"{next(_spellings):b}") + path


def failure(tool: str, what: str, folder: cache.Folder, run: confined.CommandOutcome) -> BuildError:
    """Why a compiler failed, in a line; its output goes to the log."""
    lines = [one_line(line) for line in run.output.splitlines() if line.strip()]
    if run.timed_out:
        return BuildError(f"{tool} had not finished {what} after {confined.LIMITS.time_s:.0f} s")
    full = any(message in run.output for message in ("No space left", "uota exceeded"))
    # a linker that writes by memory is killed by a disk that is full
    if full or folder.is_full(_MUCH_ROOM if "Bus error" in run.output else _LITTLE_ROOM):
        return BuildError(f"no space left in {folder.path}")
    for line in lines[:_DETAIL_LINES]:
        _log.warning("%s, %s: %s", tool, what, line)
    if run.status == -signal.SIGXFSZ or any("File size limit exceeded" in line for line in lines):
        return BuildError(f"{tool} would write more than {confined.LIMITS.file_mib} MiB for {what}")
    if run.status < 0:
        return BuildError(f"{tool} was killed by signal {-run.status} on {what}")
    message = next((line for line in lines if "error" in line), lines[0] if lines else f"status {run.status}")
    return RefusedSourceError(f"{tool} failed on {what}: {message.strip()}")


def library_recipe(
    name: str,
    sources: Sequence[Path],
    include: Sequence[Path] = (RUNTIME,),
    *,
    sanitize: bool = False,
    link: Sequence[str] = (),
) -> Recipe:
    """A library from C files, cached by their content and that of all headers beside them."""
    inputs: list[bytes | str] = [p.name + "\0" + p.read_text() for p in sources]
    inputs += [files_digest(folder, "*.h") for folder in include]
    return Recipe(name, inputs, lambda: list(sources), include, sanitize, link=link)
