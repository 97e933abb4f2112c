# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios with broken variants of the project, and says which of them are found broken (broken.toml).

    python -m soak.broken [--seeds 1..40] [--only TEXT] [--record FILE]

A variant of P4 is its compiled programs with conditions negated or statements left out; one of the
controller, the server or a NIC (interpreted then) is a text replaced in a module when that is imported. Each
runs in a process of its own, with scenarios of the schemes that it has to do with, until one breaks a promise
that the project itself keeps there.

Exit codes: 0 all were found, 1 some were not (a line for each says so), 2 bad input.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import msgspec

# no module that a variant may replace a text in
from soak.seeds import seeds_of
from tailrace.words import SpecError
from tailrace.words.arguments import Parser

if TYPE_CHECKING:
    from tailrace.p4rt.programs import Program

HERE = Path(__file__).parent
VARIANTS = HERE / "broken.toml"

HANGS_S = 300.0
"""After which a variant is ended that does not end by itself, such as one in which a packet circles."""

SLOW_S = 60.0
"""After which a scenario of a variant is taken for one that does not end."""

SETTLE_ROUNDS = 100
"""Rounds within which controllers have to mend everything here: broken ones would use all that they have."""

# by program: the schemes that run it; where a file is in several programs, the first one is broken
SCHEMES = {
    "ecmp": ("ecmp", "mp-rdma"),
    "spray": ("spray",),
    "drill": ("drill",),
    "hermes": ("hermes",),
    "presto": ("presto",),
    "letflow": ("letflow",),
    "dragonfly": ("minimal", "valiant", "ugal-l", "letflow"),
    "spritz": ("spritz", "ops", "flicr", "minimal", "valiant", "ugal-l"),
    "flowcut": ("flowcut",),
    "flowcut_dragonfly": ("flowcut",),
    "rlb_presto": ("rlb",),
    "rlb_letflow": ("rlb",),
    "rlb_drill": ("rlb",),
    "rlb_hermes": ("rlb",),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """A broken variant: `patch` (file, old, new) of Python, or `p4` (file, what) of programs."""

    name: str
    schemes: tuple[str, ...] = ()
    patch: tuple[str, str, str] | None = None
    p4: tuple[str, str] | None = None


def variants() -> list[Variant]:
    """All that broken.toml has."""
    words = msgspec.toml.decode(VARIANTS.read_bytes())
    found = [
        Variant(each["name"], tuple(each.get("schemes", ())), patch=(each["file"], each["old"], each["new"]))
        for each in words["python"]
    ]
    found += [Variant(f"p4src/{f}: {how}", p4=(f, how)) for f, hows in words["p4"].items() for how in hows]
    return found


# ---- breaking ----


def patched(path: str, old: str, new: str) -> None:
    """From now on the module at a path is imported with a text replaced; it must not have been yet."""
    usual = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if not Path(self.path).as_posix().endswith("/" + path):
            return usual(self, fullname)
        text = Path(self.path).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise SystemExit(f"broken: {path} has {text.count(old)} times {old!r}, expected once")
        return compile(text.replace(old, new), self.path, "exec")

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]


def broken_json(json_text: bytes, file: str, how: str) -> bytes | None:
    """A compiled program in which something of a file is broken; None: it has nothing of it."""
    program = json.loads(json_text)
    kind, _, text = how.partition(":")
    hit = False

    def here(part: dict[str, Any]) -> bool:
        info = part.get("source_info") or {}
        return info.get("filename") == file and str(info.get("source_fragment", "")).startswith(text)

    if kind == "not":
        for pipeline in program["pipelines"]:
            for each in pipeline["conditionals"]:
                if here(each):
                    each["true_next"], each["false_next"] = each["false_next"], each["true_next"]
                    hit = True
    else:
        for action in program["actions"]:
            kept = [part for part in action["primitives"] if not here(part)]
            hit |= len(kept) < len(action["primitives"])
            action["primitives"] = kept
    return json.dumps(program).encode() if hit else None


@functools.cache
def _sites(name: str) -> frozenset[tuple[str, str, str]]:
    """What can be broken in a program: how, in which file, and the text there."""
    from tailrace.p4rt import programs

    program = json.loads(programs.load(name).json)
    parts = [("not", each) for pipeline in program["pipelines"] for each in pipeline["conditionals"]]
    parts += [("drop", each) for action in program["actions"] for each in action["primitives"]]
    infos = [(kind, each.get("source_info") or {}) for kind, each in parts]
    return frozenset((k, str(i.get("filename")), str(i.get("source_fragment", ""))) for k, i in infos)


def program_of(file: str, how: str) -> str:
    """The first program that has what is to be broken."""
    kind, _, text = how.partition(":")
    for name in SCHEMES:
        if any(k == kind and f == file and said.startswith(text) for k, f, said in _sites(name)):
            return name
    raise SystemExit(f"broken: no program has {how} of {file}")


def _break_program(file: str, how: str, folder: str) -> str:
    """Breaks, in this process, the first program that has something of a file; its name."""
    from tailrace.native.compiler import load_program
    from tailrace.native.virtual import endpoint
    from tailrace.p4rt import programs
    from tailrace.toolchain import cc

    name = program_of(file, how)
    program = programs.load(name)
    text = broken_json(program.json, file, how)
    assert text is not None
    found = dataclasses.replace(program, json=text, cookie=program.cookie ^ 1)
    usual = programs._read

    def read(asked: str, build: Path) -> Program:
        return found if asked == name else usual(asked, build)

    setattr(programs, "_read", read)  # noqa: B010
    # it is compiled once, and runs for seconds
    setattr(cc, "FLAGS", tuple("-O0" if flag == "-O3" else flag for flag in cc.FLAGS))  # noqa: B010
    load = functools.partial(load_program, cache_dir=Path(folder))
    endpoint.compiled = functools.lru_cache(load)
    return name


# ---- running ----


def _scenarios(seeds: range, schemes: tuple[str, ...], program: str) -> Iterator[Any]:
    """So many scenarios as there are seeds, of a program if one is given."""
    from soak.draw import draw

    left, seed = len(seeds), seeds[0]
    while left and seed < seeds[0] + 50 * len(seeds):
        scenario = draw(seed, *schemes)
        if not program or scenario.plan().job.scheme.program == program:
            left -= 1
            yield scenario
        seed += 1


def _impatient() -> None:
    import soak.run

    soak.run.LONGEST_S, soak.run.SETTLE_ROUNDS = SLOW_S, SETTLE_ROUNDS


def _first(seeds: range, variant: Variant) -> tuple[int, list[str]] | None:
    """The first seed that breaks a promise, in this process, which is broken."""
    import soak.run

    program, schemes = "", variant.schemes
    _impatient()
    with tempfile.TemporaryDirectory() as folder:
        if variant.p4 is not None:
            program = _break_program(*variant.p4, folder)
            schemes = SCHEMES[program]
        for scenario in _scenarios(seeds, schemes, program):
            problems = soak.run.run(scenario).problems
            if problems:
                return scenario.seed, problems
    return None


def _child(seeds: range, variant: Variant, to: Connection) -> None:
    to.send(_first(seeds, variant))


def find(seeds: range, variant: Variant) -> tuple[int, list[str]] | None:
    """The first seed with which a variant breaks a promise, and what it breaks."""
    if variant.patch is not None:
        command = [sys.executable, "-m", "soak.broken", "--seeds", f"{seeds[0]}..{seeds[-1]}"]
        env = {**os.environ, "TAILRACE_HOSTS": "interpreted" if variant.name.startswith("NIC") else "auto"}
        try:
            done = subprocess.run(
                [*command, "--variant", variant.name],
                env=env,
                capture_output=True,
                text=True,
                timeout=HANGS_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 0, ["time: it hangs"]
        if done.returncode:
            raise SystemExit(done.stderr)
        answer = json.loads(done.stdout.splitlines()[-1])
        return None if answer is None else (answer[0], answer[1])
    forks = multiprocessing.get_context("fork")
    mine, its = forks.Pipe()
    process = forks.Process(target=_child, args=(seeds, variant, its))
    process.start()
    its.close()
    try:
        if not mine.poll(HANGS_S):
            return 0, ["time: it hangs"]
        found: tuple[int, list[str]] | None = mine.recv()
        return found
    except EOFError:
        return 0, ["code: the process ended"]
    finally:
        process.kill()
        process.join()


def _itself(variant: Variant, seed: int) -> list[str]:
    """What the project itself breaks in a variant's scenario."""
    from soak.draw import draw
    from soak.run import run

    _impatient()
    schemes = variant.schemes
    if variant.p4 is not None:
        schemes = SCHEMES[program_of(*variant.p4)]
    return run(draw(seed, *schemes)).problems


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser(prog="soak.broken", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", default="1..40", help="a range; so many scenarios each variant gets")
    parser.add_argument("--only", default="", help="variants whose name has this text")
    parser.add_argument("--record", type=Path, help="file to write a line for each variant to")
    parser.add_argument("--variant", help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args(argv)
    try:
        seeds = seeds_of(options.seeds)
    except SpecError as error:
        parser.error(str(error))
    if options.variant is not None:
        [variant] = [each for each in variants() if each.name == options.variant]
        assert variant.patch is not None
        patched(*variant.patch)
        print(json.dumps(_first(seeds, variant)))
        return 0
    chosen = [variant for variant in variants() if options.only in variant.name]
    missed = 0
    lines = []
    for variant in chosen:
        began_s = time.monotonic()
        left, found = seeds, find(seeds, variant)
        while found is not None and found[0] and _itself(variant, found[0]):
            # the project itself does not keep a promise there, so this tells nothing of the variant
            left = range(found[0] + 1, left.stop)
            found = find(left, variant) if left else None
        missed += found is None
        text = "not found" if found is None else f"seed {found[0]}: {found[1][0][:120]}"
        print(f"{variant.name}: {text} ({time.monotonic() - began_s:.0f} s)", flush=True)
        seed, problems = found or (None, [])
        problem = problems[0][:200] if problems else ""
        lines.append({"variant": variant.name, "seed": seed, "problem": problem})
    print(f"{len(chosen)} broken variants, {len(chosen) - missed} found, {missed} not")
    if options.record is not None:
        options.record.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
