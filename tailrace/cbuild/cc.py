# SPDX-License-Identifier: Apache-2.0
"""Compiles C with the machine's compiler into shared objects, cached by the hash of all inputs.

The compiler runs confined (`cbuild.confined`); the object is stored with its hash (`cbuild.cache`). Where
nothing can be compiled, an object that the wheel contains (`artifacts.PREBUILT`) is stored instead.
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
from pathlib import Path

import msgspec

from tailrace.cbuild import cache, confined
from tailrace.cbuild.artifacts import PREBUILT, RUNTIME
from tailrace.cbuild.errors import BuildError, RefusedSourceError
from tailrace.spec.text import one_line

FLAGS = (
    "-std=gnu11",
    "-O3",
    # fused multiply-add would give other results on processors that have it
    "-ffp-contract=off",
    "-g1",
    "-fPIC",
    "-shared",
    "-fno-strict-aliasing",
    "-fvisibility=default",
)
_CPUINFO_FIELD = re.compile(
    r"(vendor_id|cpu family|model|model name|flags|Features|CPU implementer|CPU variant|CPU part)\s*:"
)
SANITIZE_FLAGS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
)
PORTABLE = "TAILRACE_PORTABLE"
"""Environment variable; `1` compiles for every processor of this architecture, as wheels need it."""

_NO_COMPILER = "0" * 12
"""In the cache, the identity of the compiler of an object that comes from the wheel."""

_DETAIL_LINES = 40
# with fewer free bytes a failure is attributed to a full disk; the second limit applies after a "Bus error"
_MIN_FREE_BYTES, _MIN_FREE_BYTES_MAPPED = 1 << 18, 1 << 26
_MFD_EXEC = 0x10
# objects loaded in this process, by hash and dlopen mode: loading again would make another copy
_loaded: dict[tuple[bytes, int], ctypes.CDLL] = {}
# the number of the next spelling of a path: see _unused_path
_spellings = itertools.count(1)
_log = logging.getLogger("tailrace.switch.build")


class CCompiler(msgspec.Struct, frozen=True):
    """A compiler: its command, which begins with an absolute path, and a hash that identifies its version."""

    argv: tuple[str, ...]
    identity: str

    @property
    def name(self) -> str:
        """The file name of the program, for messages."""
        return Path(self.argv[0]).name


def compiler() -> CCompiler:
    """The C compiler: the command ``$CC``, or ``cc``.

    Raises:
        BuildError: there is none, or every user may overwrite it.
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
    # symbolic links are not resolved: ccache and the like depend on the name by which they are called
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
    """A hash of this processor's model and features from /proc/cpuinfo; empty if that cannot be read.

    Code that is compiled for this processor may not run on another.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""
    # only the first processor, and only fields that stay the same (not the clock, for example)
    lines = [line for line in text.partition("\n\n")[0].splitlines() if _CPUINFO_FIELD.match(line)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _target() -> str:
    """The processor to compile for: `processor`, or empty for all of this architecture."""
    return "" if os.environ.get(PORTABLE) == "1" else processor()


def _flags(target: str, sanitize: bool) -> tuple[str, ...]:
    """Compiler flags of a shared object; the one of the target only if `processor` identifies it."""
    march = target and platform.machine() in ("x86_64", "aarch64")
    return (*FLAGS, *(("-march=native",) if march else ()), *(SANITIZE_FLAGS if sanitize else ()))


class Recipe(msgspec.Struct, frozen=True):
    """How a shared object is compiled. Its methods compile it only if it is not in the cache.

    name: name of the object, without suffix
    inputs: everything that the object depends on; their hash is part of its file name
    sources: called when the object must be compiled; returns paths of C files, or C code
    include: folders for `#include`
    sanitize: compile with address and undefined-behaviour sanitizers
    cache_dir: folder of the cache; None: `cache.root()`
    link: additional arguments for the linker
    options: additional options for the compiler
    python: Python's header, if the object needs it
    """

    name: str
    inputs: Sequence[bytes | str]
    sources: Callable[[], Sequence[Path | str]]
    include: Sequence[Path] = (RUNTIME,)
    sanitize: bool = False
    cache_dir: Path | None = None
    link: Sequence[str] = ()
    options: Sequence[str] = ()
    python: Path | None = None

    def path(self) -> Path:
        """The object's file in the cache, after its hash has been checked.

        Raises:
            BuildError: no cache can be used, there is no compiler, or it failed.
        """
        folder = cache.open_folder(self.cache_dir)
        return folder.path / self._verified(folder)[0]

    def is_made(self) -> bool:
        """Whether the object is in the cache, so that nothing must be compiled.

        Raises:
            BuildError: no cache can be used.
        """
        return self._cached(cache.open_folder(self.cache_dir)) is not None

    def load(self, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
        """Loads the object into this process.

        Raises:
            BuildError: as for `path`, or the object cannot be loaded.
        """
        with self.opened() as (path, digest):
            key = (digest, mode)
            if key not in _loaded:
                _loaded[key] = ctypes.CDLL(path, mode=mode)
            return _loaded[key]

    @contextmanager
    def opened(self) -> Iterator[tuple[str, bytes]]:
        """A path to load the verified object from, and its hash, for a `with` block that loads it.

        The path leads to a copy in memory, which no other process can change after the check. It leads to the
        file in the cache if such a copy is impossible, or with sanitizers, which read symbols from the file.

        Raises:
            BuildError: as for `path`, or the block could not load the object.
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
        # ASAN=1 compiles every object with the sanitizers (`make test ASAN=1`)
        return self.sanitize or os.environ.get("ASAN") == "1"

    def _options(self, target: str) -> tuple[str, ...]:
        return (*_flags(target, self._sanitized()), *self.options)

    def _compiler(self) -> CCompiler:
        """The compiler; raises BuildError if there is none, or Python's header is missing."""
        if self.python is not None and not self.python.exists():
            raise BuildError(f"{self.python} is missing (Debian, Ubuntu: install python3-dev)")
        return compiler()

    def _stem(self, target: str | None = None) -> str:
        """The name without the compiler's identity; `target` None: that of `_target`."""
        h, target = hashlib.sha256(), _target() if target is None else target
        machine = (os.uname().machine, target)
        for part in (self.name, *machine, " ".join(self._options(target)), *self.link, *self.inputs):
            h.update(part.encode() if isinstance(part, str) else part)
            h.update(b"\0")
        return f"{self.name}-{h.hexdigest()[:32]}"

    def _cached(self, folder: cache.Folder) -> tuple[str, bytes] | None:
        """The object's name and content in the cache; None: it is not there.

        On a machine without a compiler it is the object that was used last, whichever compiler made it.
        """
        stem = self._stem()
        try:
            names = [f"{stem}-{self._compiler().identity}.so"]
        except BuildError:
            made = sorted(folder.path.glob(f"{stem}-*.so"), key=cache.last_used_s, reverse=True)
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
        prebuilt = PREBUILT / f"{self._stem('')}.so"
        try:
            cc = self._compiler()
        except BuildError:
            if not prebuilt.exists():
                raise
            cc = None
        name = f"{self._stem()}-{_NO_COMPILER if cc is None else cc.identity}.so"
        with folder.builder(name) as scratch:
            # another process may have built it meanwhile
            cached = self._cached(folder)
            if cached is not None:
                return cached
            made = scratch / "made.so"
            try:
                if cc is None:
                    shutil.copyfile(prebuilt, made)
                else:
                    self._compile(cc, folder, scratch, made)
            except OSError as error:
                raise cache.cache_error(folder.path, error) from None
            folder.put(name, made)
            content = folder.content(name)
            if content is None:
                raise BuildError(f"cannot load {self.name}: another process changes the cache {folder.path}")
            return name, content

    def _compile(self, cc: CCompiler, folder: cache.Folder, scratch: Path, made: Path) -> None:
        files = self._files(scratch)
        options = self._options(_target())
        command = [*cc.argv, *options, *(f"-I{path}" for path in self.include), "-o", str(made)]
        command += [*map(str, files), *self.link]
        read = confined.readable(Path(cc.argv[0]), [*self.include, *(path.parent for path in files)])
        run = confined.run(command, scratch, read)
        _log.debug("%s made with %s; confined by: %s", self.name, cc.name, ", ".join(run.active))
        if run.status != 0 or not made.is_file():
            raise failure(cc.name, self.name, folder, run)

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
    """A descriptor of an in-memory copy that can be loaded; None: this machine does not support that."""
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
        except OSError:  # the process's limit of file sizes applies to files in memory, too
            os.close(copy)
            return None
        return copy
    return None


def _unused_path(path: str) -> str:
    """The absolute path in a spelling not used before: to the loader, equal paths are the same library, but
    descriptors are reused.
    """
    return "".join("/." if bit == "1" else "/" for bit in f"{next(_spellings):b}") + path


def failure(tool: str, what: str, folder: cache.Folder, run: confined.CommandOutcome) -> BuildError:
    """The error that says in one line why a compiler failed; the compiler's output goes to the log."""
    lines = [one_line(line) for line in run.output.splitlines() if line.strip()]
    if run.timed_out:
        return BuildError(f"{tool} had not finished {what} after {confined.LIMITS.time_s:.0f} s")
    full = any(message in run.output for message in ("No space left", "uota exceeded"))
    # a linker that writes through a memory mapping dies of a bus error when the disk is full
    if full or folder.is_full(_MIN_FREE_BYTES_MAPPED if "Bus error" in run.output else _MIN_FREE_BYTES):
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
    """The recipe of a library made of C files; its inputs are these and all headers in `include`."""
    inputs: list[bytes | str] = [p.name + "\0" + p.read_text() for p in sources]
    inputs += [files_digest(folder, "*.h") for folder in include]
    return Recipe(name, inputs, lambda: list(sources), include, sanitize, link=link)
