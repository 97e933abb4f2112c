# SPDX-License-Identifier: Apache-2.0
"""A small fabric of real switches, and the command run against it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tailrace.controller import runfile
from tailrace.controller.runfile import RunFile, RunSwitch
from tailrace.topology import Topology, parse_topology
from tests.controller.inspect.served import ServedSwitch, install_scheme, served

WORDS = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Mbps,delay=1ms"
SCHEME = "flowcut:buckets=4"
TICK_NS = 1000


@dataclass
class Fabric:
    """Switches by name, and the run file that leads to them."""

    topology: Topology
    switches: dict[str, ServedSwitch]
    run_file: Path

    def install(self, *names: str) -> None:
        """Some switches, or all, as intended and with fresh counters and registers."""
        chosen = {name: self.switches[name] for name in names or self.switches}
        install_scheme(self.topology, SCHEME, chosen)


@dataclass
class Outcome:
    """What a command wrote and how it ended."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict]:
        """What -o json wrote."""
        records: list[dict] = json.loads(self.out)
        return records


def write_run_file(
    path: Path, switches: dict[str, ServedSwitch], relay: Path | None = None, time_scale: float = 1.0
) -> None:
    places = {name: RunSwitch(s.address, s.device_id, "flowcut") for name, s in switches.items()}
    content = RunFile(
        topology=WORDS,
        scheme=SCHEME,
        target="native",
        tick_ns=TICK_NS,
        relay=None if relay is None else str(relay),
        switches=places,
        time_scale=time_scale,
    )
    runfile.write(path, content)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """Two leaves, two spines, two hosts a leaf; Flowcut installed. Tests that change it call install() first."""
    topology = parse_topology(WORDS)
    with served(len(topology.switches)) as switches:
        by_name = {switch.name: place for switch, place in zip(topology.switches, switches, strict=True)}
        path = tmp_path_factory.mktemp("run") / "run.json"
        write_run_file(path, by_name)
        made = Fabric(topology, by_name, path)
        made.install()
        yield made


Command = Callable[..., Outcome]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process."""

    def run(*words: str) -> Outcome:
        capsys.readouterr()
        status = main(list(words))
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture
def tailrace(command: Command, fabric: Fabric) -> Command:
    """Runs an inspection command on the fabric."""
    return lambda name, *words: command(name, *words, "--run", str(fabric.run_file))


@pytest.fixture(scope="module")
def bare_address() -> Iterator[str]:
    """Address of a switch with the device id 1 that runs no program."""
    with served() as (switch,):
        yield switch.address


def read_terminal(ours: int) -> bytes:
    """All that is written to a pseudo-terminal, until nobody has its other end open; closes ours."""
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says so
            break
        if not part:
            break
        written += part
    os.close(ours)
    return written
