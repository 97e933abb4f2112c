# SPDX-License-Identifier: Apache-2.0
"""Stopped runs in virtual time whose links, packets and events are another terminal's."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from tailrace.cli.main import main
from tailrace.controller import runfile
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.sim.network import Network
from tailrace.sim.network.wire import Wire, WireEvent
from tailrace.sim.pause import let_inspect
from tailrace.sim.run import Breakpoints, VirtualBackend
from tailrace.study.task import run
from tests.eventually import LONG_S, eventually
from tests.experiments.test_breakpoints import TOPOLOGY, measure, same, started, until_it_stands

LINK = "leaf1-spine1"


@pytest.fixture(autouse=True)
def _separate_run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the run file goes, for this process and its children."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def stops(commands: dict[int, list[str]]) -> Breakpoints:
    """Breakpoints at times in ns, at each of which some commands run; all must succeed."""
    waiting = [commands[time_ns] for time_ns in sorted(commands)]

    def wait() -> None:
        statuses.extend(main(line.split()) for line in waiting.pop(0))

    statuses: list[int] = []
    inspect = let_inspect(lambda _text: None, wait)

    def on_pause(paused: object) -> None:
        inspect(paused)  # type: ignore[arg-type]
        assert not any(statuses)

    return Breakpoints(tuple(commands), on_pause)


@settings(max_examples=10)
@given(
    scheme=st.sampled_from(["ecmp", "flowcut:variant=full", "flowcut:variant=nic"]),
    begin_us=st.integers(0, 60),
    length_us=st.one_of(st.none(), st.integers(1, 60)),
    factor=st.sampled_from([None, "0.1", "0.5"]),
)
def test_a_command_is_a_fault(scheme: str, begin_us: int, length_us: int | None, factor: str | None) -> None:
    """A link that a command takes down and up, or slows down, at a stop has that fault at that time: the runs are
    equal to the last frame, the controller's reaction included."""
    first, last = ("down", "up") if factor is None else (f"rate {float(factor) * 10:g}Gbps", "rate 10Gbps")

    def line(to: str) -> str:
        action, *rate = to.split()
        return " ".join(["link", action, LINK, *rate])

    commands = {begin_us * 1000: [line(first)]}
    fault = f"link-down:link={LINK}" if factor is None else f"link-slow:link={LINK},factor={factor}"
    fault += f",at={begin_us}us"
    if length_us is not None:
        commands[(begin_us + length_us) * 1000] = [line(last)]
        fault += f",until={begin_us + length_us}us"
    changed, faulty = measure(stops(commands), scheme=scheme), measure(scheme=scheme, fault=[fault])
    assert changed.rows == faulty.rows
    assert changed.summary.trace_sha256 == faulty.summary.trace_sha256


def read(file: Path) -> list[tuple[int, bytes, int]]:
    """Time in ns, octets and length on the link of every frame, as Scapy reads them; a frame's payload is virtual."""
    with RawPcapReader(str(file)) as reader:
        assert reader.nano
        return [(meta.sec * 10**9 + meta.usec, data, meta.wirelen) for data, meta in reader]


def test_every_packet_of_a_link_is_captured(tmp_path: Path) -> None:
    """From the stop on and in both directions, with times, bytes and lengths as a tap has them; the run is the same
    as without, and the capture ends with it."""
    arrived: list[tuple[int, bytes, int]] = []

    def tap(_wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is WireEvent.RECEIVED:
            arrived.append((now_ns, frame, len(frame) + virtual_bytes))

    def observe(network: Network) -> None:
        network.tap(tap, network.wires_between("leaf1", "spine1") + network.wires_between("spine1", "leaf1"))

    file = tmp_path / "link.pcap"
    captures: list[subprocess.Popen[bytes]] = []
    command = [*(sys.executable, "-m", "tailrace.cli.main", "capture", LINK, "--out", str(file))]
    limited = [*command[:-1], str(tmp_path / "few.pcap"), "--count", "7"]

    def wait() -> None:
        captures.extend(subprocess.Popen(words) for words in (command, limited))
        # the header is written when the network captures
        assert eventually(lambda: all(Path(words[6]).exists() for words in (command, limited)))

    words = {
        "scheme": "flowcut:buckets=16",
        "topology": TOPOLOGY,
        "workload": "permutation:size=64KiB,peers=remote",
    }
    halt = let_inspect(lambda _text: None, wait)
    backend = VirtualBackend(observe=observe, breakpoints=Breakpoints((20_000,), halt))
    captured = run(plan(make(words), "virtual"), backend, lambda _progress: None, label="it")
    assert [process.wait(LONG_S) for process in captures] == [0, 0]
    assert same(captured, measure())
    frames = read(file)
    assert frames == [frame for frame in arrived if frame[0] > 20_000]
    assert len(frames) > 50
    assert read(tmp_path / "few.pcap") == frames[:7]


def test_what_another_terminal_sees(capsys: pytest.CaptureFixture[str]) -> None:
    """The network, its links as commands have left them, and the events so far; after the run there is no network."""
    shown: dict[str, list[dict]] = {}

    def show(*words: str) -> Callable[[], None]:
        capsys.readouterr()
        assert main([*words, "-o", "json"]) == 0
        shown[" ".join(words)] = json.loads(capsys.readouterr().out)
        return lambda: None

    def wait() -> None:
        for words in (("link", "down", "spine1-leaf1"), ("link", "rate", "leaf2-spine2", "2.5Gbps")):
            assert main(list(words)) == 0
        for part in ("networks", "links", "switches", "hosts"):
            show("ls", "--show", part)
        show("events")

    changed = measure(Breakpoints((30_000,), let_inspect(lambda _text: None, wait)))
    (network,) = shown["ls --show networks"]
    assert network["state"] == "stopped at 30us" and network["down"] == ["leaf1-spine1"]
    assert (network["switches"], network["hosts"], network["links"]) == (4, 4, 8)
    links = {row["link"]: (row["state"], row["rate"]) for row in shown["ls --show links"]}
    assert links.pop("leaf1-spine1") == ("down", "10Gbps")
    assert links.pop("leaf2-spine2") == ("up", "2.5Gbps")
    assert set(links.values()) == {("up", "10Gbps")} and len(links) == 6
    assert {row["switch"] for row in shown["ls --show switches"]} == {"leaf1", "leaf2", "spine1", "spine2"}
    assert {row["host"] for row in shown["ls --show hosts"]} == {"h1", "h2", "h3", "h4"}
    events = [(row["time"], row["event"], row["subject"]) for row in shown["events"]]
    assert events == [("30us", "link-set", "leaf1-spine1"), ("30us", "link-set", "leaf2-spine2")]
    assert [event.subject for event in changed.events] == ["leaf1-spine1", "leaf2-spine2"]
    assert not list(runfile.folder().iterdir())
    capsys.readouterr()
    assert main(["ls"]) == 2
    assert "no network of yours is running" in capsys.readouterr().err


def test_events_are_followed_while_the_run_goes_on(tmp_path: Path) -> None:
    """RLB's, to the end of the run; a network that a fault has cut cannot be mended by a command."""
    words = (
        "--scheme",
        "rlb:variant=letflow",
        "--fault",
        f"link-down:link={LINK},at=5us",
        "--stop-at",
        "10us",
    )
    followed: list[str] = []
    with started(tmp_path, *words) as process:
        until_it_stands(process)
        assert main(["link", "up", LINK]) == 2
        command = [sys.executable, "-m", "tailrace.cli.main", "events", "--follow", "-o", "jsonl"]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as follower:
            assert follower.stdout is not None
            thread = threading.Thread(target=lambda: followed.extend(follower.stdout or ()))
            thread.start()
            assert main(["link", "down", "leaf2-spine2"]) == 0
            assert eventually(lambda: any("leaf2-spine2 is down" in line for line in followed))
            process.communicate("\n", timeout=LONG_S)
            assert follower.wait(LONG_S) == 0
            thread.join(LONG_S)
    recorded = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    seen = [json.loads(line) for line in followed]
    assert [event["text"] for event in seen] == [event["text"] for event in recorded]


def test_a_run_of_several_ranks_is_only_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with started(tmp_path, "--ranks", "2", "--stop-at", "10us") as process:
        until_it_stands(process)
        for words in (["link", "down", LINK], ["capture", LINK, "--out", str(tmp_path / "x.pcap")]):
            assert main(words) == 1
            assert "only a stopped run of one rank can be changed and captured" in capsys.readouterr().err
        assert main(["ls"]) == 0
        process.communicate("\n", timeout=LONG_S)
    assert process.returncode == 0
    assert not (tmp_path / "x.pcap").exists()
