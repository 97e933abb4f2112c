# SPDX-License-Identifier: Apache-2.0
"""The fuzz drivers as programs: compiled with sanitizers, for coverage with clang, and kept by the hash of all input."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tailrace.cbuild.artifacts import CODEC, RUNTIME
from tailrace.codec import table
from tailrace.switch.compiler.emit import emit
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CORPUS = HERE / "corpus"
IO = ROOT / "tailrace" / "switch" / "daemon" / "io"
PROGRAMS = {
    path.stem: path
    for folder in ("tests/programs", "p4src")
    for path in sorted((ROOT / folder / "build").glob("*.json"))
}
"""All compiled programs by name."""

# lines and functions for reports: full notes take the compiler twice as long
COMMON = ("-std=gnu11", "-O1", "-g1", "-fno-omit-frame-pointer")
SANITIZED = (*COMMON, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Leaks are found by the address sanitizer's own check at the end of the run. What hoards memory ends with a report.
OPTIONS = {
    "ASAN_OPTIONS": "hard_rss_limit_mb=2048:detect_leaks=1:quarantine_size_mb=8:malloc_context_size=6",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
MISSING = "coverage needs clang and its libFuzzer (Debian, Ubuntu: apt-get install clang)"


def libfuzzer() -> str | None:
    """The clang that has libFuzzer, a package of its own for some."""
    clang = shutil.which("clang")
    if clang is None:
        return None
    asked = subprocess.run([clang, "--print-runtime-dir"], capture_output=True, text=True, check=False)
    has_library = any(Path(asked.stdout.strip()).parent.rglob("libclang_rt.fuzzer*.a"))
    return clang if has_library else None


CLANG = libfuzzer()


class Kind:
    """A way to compile: with which compiler and flags, which of our sources, and folders for headers."""

    def __init__(self, cc: str | None, flags: Sequence[str], sources: Sequence[Path], *include: Path) -> None:
        self.cc = cc
        self.flags = tuple(flags)
        self.sources = tuple(sources)
        self.include = include

    def make(self, arguments: Sequence[str], folder: Path) -> None:
        """Runs the compiler.

        Raises:
            RuntimeError: with what it said.
        """
        folders = (f"-I{path}" for path in self.include)
        done = subprocess.run(
            [str(self.cc), *self.flags, *folders, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def objects(self, folder: Path) -> list[str]:
        """Our sources, compiled once for all programs."""
        kept = folder / self.identity()
        if not kept.is_dir():
            making = folder / f"{kept.name}.new"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(parents=True)
            self.make(["-c", *map(str, self.sources)], making)
            making.rename(kept)
        return [str(path) for path in sorted(kept.glob("*.o"))]

    @functools.cached_property
    def _sources(self) -> bytes:
        texts = [path.read_bytes() for path in self.sources]
        texts += [path.read_bytes() for folder in self.include for path in sorted(folder.glob("*.h"))]
        return hashlib.sha256(b"\0".join([str((self.cc, self.flags)).encode(), *texts])).digest()

    def identity(self, text: str = "") -> str:
        """A name for what is made of the sources and a program's C text."""
        return hashlib.sha256(self._sources + text.encode()).hexdigest()[:16]


def c_files(*names: str) -> list[Path]:
    """Drivers' sources, by name."""
    return [HERE / f"{name}.c" for name in names]


_PARTS = ("fuzz_control", "fuzz_frames", "fuzz_run", "fuzz_story")
_CORE = sorted(RUNTIME.glob("*.c"))
SEEDED = Kind(shutil.which("cc"), SANITIZED, [*_CORE, *c_files(*_PARTS, "fuzz_main")], RUNTIME, HERE)
COVERED = Kind(
    CLANG,
    # the name by which GCC says so, and the core asks
    (*SANITIZED, "-fsanitize=fuzzer-no-link", "-D__SANITIZE_ADDRESS__=1"),
    [*_CORE, *c_files(*_PARTS, "fuzz_cover")],
    RUNTIME,
    HERE,
)
THREADED = Kind(
    shutil.which("cc"),
    (*COMMON, "-fsanitize=thread"),
    [*_CORE, *sorted(IO.glob("*.c")), *c_files(*_PARTS[:2], "fuzz_story", "fuzz_threads")],
    RUNTIME,
    IO,
    HERE,
)


@functools.cache
def c_text(name: str) -> str:
    """A program as our compiler writes it."""
    return emit(read_bmv2_json(PROGRAMS[name].read_bytes(), name))


def driver(kind: Kind, text: str, folder: Path, *link: str) -> Path:
    """A driver linked with a program, which is an object with a data plane of its own, as everywhere.

    Args:
        text: the program's C text.
        folder: where drivers are kept.
    """
    objects = kind.objects(folder)
    kept = folder / f"driver-{kind.identity(text)}"
    if not kept.is_dir():
        making = folder / f"{kept.name}.new"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        (making / "program.c").write_text(text, "utf-8")
        kind.make(["-shared", "-fPIC", "-fvisibility=hidden", "program.c", "-o", "libprogram.so"], making)
        where = ["-L.", "-lprogram", "-Wl,-rpath,$ORIGIN"]
        kind.make(["-rdynamic", *objects, *where, *link, "-o", "fuzz", "-lpthread", "-lm"], making)
        making.rename(kept)
    return kept / "fuzz"


def target(name: str, sources: Sequence[Path], folder: Path, *include: Path) -> Path:
    """A fuzz target of libFuzzer that needs no program."""
    flags = (*SANITIZED, "-fsanitize=fuzzer")
    kind = Kind(CLANG, flags, [HERE / f"{name}.c", *sources], *include)
    kept = folder / f"{name}-{kind.identity()}"
    if not kept.is_dir():
        making = folder / f"{kept.name}.new"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        kind.make([*map(str, kind.sources), "-o", "fuzz"], making)
        making.rename(kept)
    return kept / "fuzz"


def codec_target(folder: Path) -> Path:
    """The one of the codec of hosts' frames."""
    sources = [CODEC / f"{name}.c" for name in ("tc_codec", "tc_build", "tc_crc")]
    return target("fuzz_codec", sources, folder, CODEC)


def offload_target(folder: Path) -> Path:
    """The one of checksums and segments in the real-time front end."""
    return target("fuzz_offload", [IO / "tri_offload.c"], folder, IO)


def layout() -> bytes:
    """What the codec is told of all headers, as its target reads it."""
    names = re.findall(r"\bX\((\w+)\)", (CODEC / "tc_codec.h").read_text("utf-8"))
    values = [*(table.offsets()[name] for name in names), *table.icrc_mask()]
    return struct.pack(f"={len(values)}I", *values)
