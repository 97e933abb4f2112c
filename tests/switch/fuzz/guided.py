# SPDX-License-Identifier: Apache-2.0
"""Frames and control calls that coverage guides: libFuzzer on every program, the codec and the offloads.

A corpus is kept in one file, `corpus/NAME.units`, as units that each reach what no other one does: a length of two
bytes and so many bytes. What a run adds to it is small, since only short units are kept.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from tests.switch.fuzz import builds

LONGEST_UNIT = 4096
LONGEST_KEPT = 512
MOST_KEPT_BYTES = 48 << 10
PATIENCE_S = 60
"""What a run may take beyond its time."""
UNIT_S = 20
"""What one unit may take."""


class FoundError(Exception):
    """A fault: the text of the sanitizer, and the file that repeats it."""


@dataclass(frozen=True)
class Counted:
    """What a run did: frames and control calls, and edges of all code that were reached, of how many."""

    frames: int
    controls: int
    edges: int
    of_edges: int


@dataclass(frozen=True)
class Target:
    """Something to fuzz: `make` compiles it into a folder."""

    name: str
    make: Callable[[Path], Path]

    def environment(self, folder: Path) -> Mapping[str, str]:
        """What the target is told."""
        layout = folder / "layout"
        layout.write_bytes(builds.layout())
        story = builds.CORPUS / f"{self.name}.story"
        return {
            **os.environ,
            **builds.OPTIONS,
            "FUZZ_COUNTS": str(folder / f"{self.name}.counts"),
            "FUZZ_LAYOUT": str(layout),
            **({"FUZZ_STORY": str(story)} if story.is_file() else {}),
        }


def program_driver(name: str, folder: Path) -> Path:
    """The target of a program."""
    return builds.driver(builds.COVERED, builds.c_text(name), folder, "-fsanitize=fuzzer")


def targets() -> list[Target]:
    """All of them: programs by their names, the others by what they are."""
    programs = [Target(name, functools.partial(program_driver, name)) for name in builds.PROGRAMS]
    return [*programs, Target("codec", builds.codec_target), Target("offload", builds.offload_target)]


def super_frames() -> Iterator[bytes]:
    """What hosts leave to hardware: what the kernel notes (virtio 1.2 §5.1.6), the kind of link, and the frame."""
    gso_tcp4, gso_tcp6, gso_udp, needs_checksum = 1, 4, 5, 1
    for gso, frame, checksum in (
        (gso_tcp4, Ether() / IP() / TCP() / bytes(300), 16),
        (gso_tcp6, Ether() / IPv6() / TCP() / bytes(300), 16),
        (gso_udp, Ether() / IP() / UDP() / bytes(300), 6),
        (gso_tcp4, Ether() / Dot1Q() / IP() / TCP() / bytes(300), 16),
    ):
        start = len(frame) - len(frame.lastlayer().underlayer)
        yield struct.pack("=BBHHHH", needs_checksum, gso, start, 100, start, checksum) + b"\0" + bytes(frame)


def unpack(name: str, folder: Path) -> Path:
    """The corpus of a target as libFuzzer wants it, with what earlier runs have left there."""
    corpus = folder / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    if name == "offload":
        for number, unit in enumerate(super_frames()):
            (corpus / f"frame-{number}").write_bytes(unit)
    packed, at = builds.CORPUS / f"{name}.units", 0
    data = packed.read_bytes() if packed.is_file() else b""
    while at < len(data):
        (size,) = struct.unpack_from("<H", data, at)
        unit = data[at + 2 : at + 2 + size]
        (corpus / f"kept-{at:06d}").write_bytes(unit)
        at += 2 + size
    return corpus


def run(target: Target, folder: Path, seconds: float, seed: int) -> Counted:
    """Fuzzes a target for so long.

    Raises:
        FoundError: it failed.
    """
    made = target.make(folder)
    corpus, faults = unpack(target.name, folder), folder / "faults"
    faults.mkdir(exist_ok=True)
    command = [
        str(made),
        f"-max_total_time={max(1, round(seconds))}",
        f"-max_len={LONGEST_UNIT}",
        f"-seed={seed}",
        f"-timeout={UNIT_S}",
        f"-artifact_prefix={faults}/{target.name}-",
        # comparisons count as coverage in one run of four, which takes twice the time
        f"-use_value_profile={int(seed % 4 == 0)}",
        "-len_control=0",
        "-print_final_stats=1",
        "-reload=0",
        str(corpus),
    ]
    environment = target.environment(folder)
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds + PATIENCE_S,
    )
    if done.returncode != 0:
        raise FoundError(f"{target.name}: {' '.join(command)}\n{done.stderr[-6000:]}")
    counts = re.findall(r"=(\d+)", Path(environment["FUZZ_COUNTS"]).read_text("utf-8"))
    covered = re.findall(r"cov: (\d+)", done.stderr)
    of_edges = sum(map(int, re.findall(r"\((\d+) inline 8-bit counters\)", done.stderr)))
    of_edges = of_edges or sum(map(int, re.findall(r"\((\d+) PCs\)", done.stderr)))
    return Counted(int(counts[0]), int(counts[1]), int(covered[-1]) if covered else 0, of_edges)


def keep(target: Target, folder: Path) -> int:
    """Makes the corpus small and writes it to the repository; how many units there are."""
    made, corpus = target.make(folder), unpack(target.name, folder)
    small = folder / "small"
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir()
    subprocess.run(
        [str(made), "-merge=1", f"-max_len={LONGEST_KEPT}", str(small), str(corpus)],
        env=target.environment(folder),
        capture_output=True,
        check=True,
    )
    units = sorted((path.read_bytes() for path in small.iterdir()), key=lambda unit: (len(unit), unit))
    packed = b""
    for unit in units:
        if len(packed) + len(unit) > MOST_KEPT_BYTES:
            break
        packed += struct.pack("<H", len(unit)) + unit
    (builds.CORPUS / f"{target.name}.units").write_bytes(packed)
    return len(units)
