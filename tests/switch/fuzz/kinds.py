# SPDX-License-Identifier: Apache-2.0
"""The kinds of fuzzing, each for a time: rows of what was done. See __main__.py."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tailrace.cbuild.artifacts import RUNTIME
from tailrace.cbuild.cc import files_digest
from tailrace.p4rt.status import Code
from tailrace.switch.compiler import CompilerError, SwitchProgram, load_program
from tailrace.switch.compiler.emit import emit
from tailrace.switch.compiler.read.bmv2_json import read_bmv2_json
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.switch.p4runtime.device import DeviceSettings
from tailrace.switch.p4runtime.entities.schema import Schema, build_schema
from tailrace.switch.p4runtime.memory import array_bytes
from tests.bad_input.readers import READERS, check, examples_of, mutant
from tests.switch.compiler.mutants import Mutants
from tests.switch.fuzz import builds
from tests.switch.fuzz.guided import FoundError, run, targets
from tests.switch.p4runtime.conftest import Rig
from tests.switch.p4runtime.fuzzed import Fuzzed, InProcess, facts_of

LEAST_S = 2.0
"""Of one target, so that what is compiled is used."""
AT_ONCE = 2000
"""Updates on one pipeline, which is then made anew."""
MUTANT_FRAMES = 2000
MUTANT_S = 30
"""What a mutant's frames may take, else a hundredth of them."""
MUTANT_ARRAYS = 64 << 20
"""Bytes of arrays of a mutant that is still run."""
SMALL_PROGRAM = 120_000
"""Bytes of JSON of the programs of which mutants are made."""
THREADS_MS = 2500

Row = dict[str, Any]
Run = Callable[[Path, float, random.Random, set[str]], Iterator[Row]]
"""A kind: where it may work, its time, its choices, and the names to which it is bound if there are any."""


class CannotError(Exception):
    """Something is missing on this machine: one line that says what."""


def chosen(names: Sequence[str], only: set[str], rng: random.Random) -> list[str]:
    """In an order at random, so that short runs get to all of them in time."""
    selected = [name for name in names if not only or name in only]
    rng.shuffle(selected)
    return selected


def seed_of(rng: random.Random) -> int:
    return rng.getrandbits(31) + 1


# ---- guided by coverage ----


def guided(folder: Path, seconds: float, rng: random.Random, only: set[str]) -> Iterator[Row]:
    """Frames and control calls."""
    if builds.CLANG is None:
        raise CannotError(builds.MISSING)
    known = {target.name: target for target in targets()}
    names = chosen(list(known), only, rng)
    end = time.monotonic() + seconds
    for number, name in enumerate(names):
        left = end - time.monotonic()
        if left <= 0:
            return
        target = known[name]
        made = target.make(folder)
        begun = time.monotonic()
        counted = run(target, folder, max(LEAST_S, (end - begun) / (len(names) - number)), seed_of(rng))
        yield {
            "kind": "guided",
            "name": name,
            "frames": counted.frames,
            "controls": counted.controls,
            "edges": counted.edges,
            "of_edges": counted.of_edges,
            "seconds": round(time.monotonic() - begun, 1),
            "sources": made.parent.name.rpartition("-")[2],
        }


# ---- updates of P4Runtime ----


@cache
def pipeline(name: str) -> tuple[SwitchProgram, Schema]:
    """A compiled program and its P4Info."""
    path = builds.PROGRAMS[name]
    info = p4i.P4Info()
    text_format.Parse(path.with_suffix("").with_suffix(".p4info.txtpb").read_text("utf-8"), info)
    program = load_program(path.read_bytes())
    return program, build_schema(info, program.model)


@cache
def server_digest() -> str:
    """A hash of what answers updates."""
    parts = [
        files_digest(builds.ROOT / "tailrace" / "switch" / part, "*.py") for part in ("p4runtime", "core")
    ]
    parts.append(files_digest(RUNTIME, "*.[ch]"))
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def _fuzzed(
    kind: str, seconds: float, rng: random.Random, only: set[str], once: Callable[[str, int], Fuzzed]
) -> Iterator[Row]:
    end = time.monotonic() + seconds
    names = chosen(list(builds.PROGRAMS), only, rng)
    for number, name in enumerate(names):
        begun, left = time.monotonic(), end - time.monotonic()
        if left <= 0:
            return
        until, updates, accepted = begun + left / (len(names) - number), 0, 0
        while updates == 0 or time.monotonic() < until:
            seed = seed_of(rng)
            try:
                done = once(name, seed)
            except AssertionError as error:
                raise FoundError(f"{name}, seed {seed}: {error}") from None
            updates += done.updates
            accepted += done.accepted
        yield {
            "kind": kind,
            "name": name,
            "updates": updates,
            "accepted": round(accepted / updates, 2),
            "seconds": round(time.monotonic() - begun, 1),
            "sources": server_digest(),
        }


def updates(_folder: Path, seconds: float, rng: random.Random, only: set[str]) -> Iterator[Row]:
    """In this process, on the state of a pipeline."""

    def once(name: str, seed: int) -> Fuzzed:
        program, schema = pipeline(name)
        target = InProcess(program, schema)
        try:
            fuzzed = Fuzzed(target, facts_of(schema), seed)
            fuzzed.run(AT_ONCE)
        finally:
            target.close()
        return fuzzed

    yield from _fuzzed("updates", seconds, rng, only, once)


class OverGrpc:
    """A server behind gRPC."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def write(self, batch: Sequence[p4r.Update], *, whole: bool) -> list[Code]:
        return self.rig.write(*batch, atomicity=int(whole))

    def read(self, requests: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        return self.rig.read(*requests)


def grpc(_folder: Path, seconds: float, rng: random.Random, only: set[str]) -> Iterator[Row]:
    """Through a server and a client in this process."""
    rig = Rig(None, DeviceSettings(device_id=1), DevicePorts())
    rig.primary()

    def once(name: str, seed: int) -> Fuzzed:
        rig.push(name, build=builds.PROGRAMS[name].parent)
        fuzzed = Fuzzed(OverGrpc(rig), facts_of(pipeline(name)[1]), seed)
        fuzzed.run(AT_ONCE)
        return fuzzed

    try:
        yield from _fuzzed("grpc", seconds, rng, only, once)
    finally:
        rig.close()


# ---- text and files ----


def readers(folder: Path, seconds: float, rng: random.Random, only: set[str]) -> Iterator[Row]:
    """Mutants of what readers of words and files take."""
    end = time.monotonic() + seconds
    names = chosen(list(READERS), only, rng)
    place = folder / "readers"
    place.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        begun = time.monotonic()
        until, inputs, accepted = begun + (end - begun) / (len(names) - number), 0, 0
        examples = examples_of(name)
        while inputs == 0 or time.monotonic() < until:
            content = mutant(rng, examples)
            inputs += 1
            try:
                accepted += check(READERS[name], content, place)
            except Exception as error:
                what = f"{name}: {type(error).__name__}: {error!s:.500}"
                raise FoundError(
                    f"{what}\n{_kept(content, 'reader', Path(READERS[name].name).suffix)}"
                ) from error
        yield {
            "kind": "readers",
            "name": name,
            "inputs": inputs,
            "accepted": round(accepted / inputs, 2),
            "seconds": round(time.monotonic() - begun, 1),
            "sources": files_digest(builds.ROOT / "tailrace", "*.py")[:16],
        }


# ---- the compiler ----


def mutants(folder: Path, seconds: float, rng: random.Random, only: set[str]) -> Iterator[Row]:
    """Programs that p4c would not write: refused in a line, or C without undefined behaviour."""
    if builds.SEEDED.cc is None:
        raise CannotError("no C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev)")
    small = [name for name, path in builds.PROGRAMS.items() if path.stat().st_size < SMALL_PROGRAM]
    end = time.monotonic() + seconds
    names = chosen(small, only, rng)
    for number, name in enumerate(names):
        begun = time.monotonic()
        if begun >= end:
            return
        until = begun + (end - begun) / (len(names) - number)
        mutator, seen, made, ran = Mutants(builds.PROGRAMS[name].read_bytes()), {builds.c_text(name)}, 0, 0
        while made == 0 or time.monotonic() < until:
            what, text = mutator.mutant(rng)
            made += 1
            compiled = compiled_mutant(name, what, text)
            if compiled is not None and compiled not in seen:
                seen.add(compiled)
                _run_mutant(name, what, text, compiled, folder, seed_of(rng))
                ran += 1
        yield {
            "kind": "mutants",
            "name": name,
            "programs": made,
            "run": ran,
            "frames": ran * MUTANT_FRAMES,
            "seconds": round(time.monotonic() - begun, 1),
            "sources": hashlib.sha256(
                (
                    files_digest(builds.ROOT / "tailrace" / "switch" / "compiler", "*.py") + server_digest()
                ).encode()
            ).hexdigest()[:16],
        }


def compiled_mutant(name: str, what: str, text: bytes) -> str | None:
    """The C text of a mutant that is accepted."""
    try:
        model = read_bmv2_json(text, name)
        if array_bytes(model) > MUTANT_ARRAYS:
            return None
        return emit(model)
    except CompilerError as error:
        said = str(error)
        if not said.isprintable() or not said.startswith(f"{name}: ") or len(said) > 2000:
            raise FoundError(f"{name}: {what}: refused with {said!r:.3000}") from None
        return None
    except Exception as error:
        raise FoundError(f"{name}: {what}: {type(error).__name__}: {error!s:.500}\n{_kept(text)}") from error


def _kept(text: bytes, what: str = "mutant", ending: str = ".json") -> str:
    path = builds.ROOT / "build" / "fuzz" / "faults"
    path.mkdir(parents=True, exist_ok=True)
    file = path / f"{what}-{hashlib.sha256(text).hexdigest()[:12]}{ending}"
    file.write_bytes(text)
    return str(file)


def _run_mutant(name: str, what: str, text: bytes, compiled: str, folder: Path, seed: int) -> None:
    story = builds.CORPUS / f"{name}.story"
    try:
        made = builds.driver(builds.SEEDED, compiled, folder / "mutants")
    except RuntimeError as error:
        raise FoundError(f"{name}: {what}: C that does not compile: {error!s:.3000}\n{_kept(text)}") from None
    for frames in (MUTANT_FRAMES, MUTANT_FRAMES // 100):
        command = [str(made), str(frames), str(seed), str(story)]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **builds.OPTIONS},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=MUTANT_S,
            )
        except subprocess.TimeoutExpired:
            continue  # packets may go round for ever, each frame for its bounded time: fewer frames must end
        if done.returncode != 0 or done.stderr:
            raise FoundError(f"{name}: {what}: {done.stderr[-4000:]}\n{made} {_kept(text)}")
        break
    else:
        raise FoundError(f"{name}: {what}: {' '.join(command)} does not end\n{_kept(text)}")
    for path in made.parent.iterdir():
        path.unlink()
    made.parent.rmdir()


# ---- threads ----


def threads(folder: Path, seconds: float, rng: random.Random, only: set[str]) -> Iterator[Row]:
    """The real-time front end around each program of p4src, under the thread sanitizer."""
    if builds.THREADED.cc is None:
        raise CannotError("no C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev)")
    if os.geteuid() != 0:
        raise CannotError("wants to be root: it makes network namespaces")
    end = time.monotonic() + seconds
    names = [name for name, path in builds.PROGRAMS.items() if path.parents[1].name == "p4src"]
    for name in chosen(names, only, rng):
        if time.monotonic() >= end:
            return
        made = builds.driver(builds.THREADED, builds.c_text(name), folder)
        begun = time.monotonic()
        command = [str(made), str(THREADS_MS), str(seed_of(rng)), str(builds.CORPUS / f"{name}.story")]
        done = subprocess.run(
            command,
            env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=120,
        )
        if done.returncode != 0 or done.stderr:
            raise FoundError(f"{name}: {' '.join(command)}\n{done.stderr[:6000]}")
        frames, controls, received = map(int, re.findall(r"=(\d+)", done.stdout))
        yield {
            "kind": "threads",
            "name": name,
            "frames": frames,
            "controls": controls,
            "received": received,
            "seconds": round(time.monotonic() - begun, 1),
            "sources": made.parent.name.rpartition("-")[2],
        }
