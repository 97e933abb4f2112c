# SPDX-License-Identifier: Apache-2.0
"""Stopped runs of users' programs: what commands say and show, and what they leave in the results."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.cli.inspect.packet_walk import host_frame
from tailrace.cli.main import main
from tailrace.sim.pause import let_inspect
from tailrace.topology import parse_topology
from tests.user_programs.network import HOSTS, MACS, TOPOLOGY, make_network

REMOTE = "permutation:size=20KiB,peers=remote"
ROUTE = {"table": "L3Ingress.route", "match": {"dst": [HOSTS["h3"], 32]}}
DETOUR = {"action_name": "forward", "action_params": {"next_hop": MACS["h3"], "port": 3}}
WRITE = ("write", "s1", json.dumps({**ROUTE, **DETOUR}))
DELETE = ("delete", "s1", json.dumps(ROUTE))


@pytest.fixture(autouse=True)
def network(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    # a path without the test's name: that of a socket has at most 107 bytes
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    (tmp_path / "net").mkdir()
    monkeypatch.chdir(tmp_path / "net")
    return make_network(tmp_path / "net")


def stopped(*actions: Callable[[], object], said: list[str] | None = None, **keys: Any) -> Any:
    """The result of a run that stops at 1 ms, where the actions are called, one by one; all must end."""
    ended = 0

    def wait() -> None:
        nonlocal ended
        for action in actions:
            action()
            ended += 1

    texts = [] if said is None else said
    given = {"topology": TOPOLOGY, "workload": REMOTE, "target": "virtual"} | keys
    stop = let_inspect(texts.append, wait)
    return tailrace.run(
        scheme="program:json=basic_l3.json", stop_at=["1ms"], at_stop=stop, out="out", **given
    )


def command(*words: str) -> Callable[[], None]:
    def run() -> None:
        assert main(list(words)) == 0

    return run


def test_changes_by_hand_are_events_and_the_run_says_that_its_command_does_not_repeat_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In events.jsonl, summary, table, report and in what `trace --run` gives as the cause of a difference."""
    entry = f"dst={HOSTS['h3']}/32 of table route"
    texts = [
        "s1-s2 has 5Mbps, by command at 1ms",
        f"s1, over P4Runtime: modify {entry} -> forward(next_hop={MACS['h3']}, port=3), at 1ms",
        f"s1, over P4Runtime: delete {entry}, at 1ms",
    ]
    changed = stopped(*(command(*words) for words in (("link", "rate", "s1-s2", "5Mbps"), WRITE, DELETE)))
    assert changed.summary.changes == tuple(texts)
    events = [json.loads(line) for line in Path("out/events.jsonl").read_text().splitlines()]
    assert [event["text"] for event in events] == texts
    assert [(event["event"], event["subject"], event["time_ns"]) for event in events] == [
        (kind, subject, 1_000_000)
        for kind, subject in (("link-set", "s1-s2"), ("write", "s1"), ("write", "s1"))
    ]
    capsys.readouterr()
    assert main(["trace", "--run", "out", "--flow", "1", "--psn", "3"]) == 1
    error = capsys.readouterr().err
    assert "changed by hand, which its specs do not repeat: s1-s2 has 5Mbps" in error
    assert "code, plug-ins" not in error
    assert main(["report", "out"]) == 0
    page = Path("out/report.html").read_text()
    assert all(text.replace(">", "&gt;") in page for text in texts)


def test_what_only_looks_is_no_change() -> None:
    """Nor is a write that the switch refuses."""
    refused = json.dumps({**ROUTE, "action_name": "no_such"})
    looked = stopped(
        *(
            command(*words)
            for words in (("tables",), ("counters",), ("trace", "h1", "h3"), ("paths", "h1", "h3"))
        ),
        lambda: main(["write", "s1", refused]),
    )
    assert not looked.summary.changes and not looked.events
    again = tailrace.run(
        scheme="program:json=basic_l3.json", topology=TOPOLOGY, workload=REMOTE, target="virtual"
    )
    assert looked.summary.trace_sha256 == again.summary.trace_sha256


def test_several_ranks_cannot_be_changed(capsys: pytest.CaptureFixture[str]) -> None:
    statuses: list[int] = []
    result = stopped(lambda: statuses.append(main(list(WRITE))), ranks=2)
    assert statuses == [1]
    assert "this run cannot be changed" in capsys.readouterr().err
    assert not result.summary.changes


def test_the_line_at_a_stop_lists_commands_that_work(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    stopped(lambda: None, said=said)
    (line,) = (line for line in said[0].splitlines() if line.startswith("inspect"))
    names = [word.strip(",") for word in line.partition("tailrace ")[2].split()]
    assert {"tables", "counters", "trace", "write"} <= {*names} and not {"flows", "diff"} & {*names}


def test_trace_sends_what_the_host_would(capsys: pytest.CaptureFixture[str]) -> None:
    """To the gateway's MAC address of the host's ARP entry, or that of a host in the subnet, as flows do."""
    arrived: list[str] = []

    def trace(to: str) -> Callable[[], None]:
        def run() -> None:
            capsys.readouterr()
            assert main(["trace", "h1", to, "--json"]) == 0
            arrived.append(json.loads(capsys.readouterr().out)[0]["trace"]["steps"][0]["frame"][:12])

        return run

    capture = stopped(trace("h3"), trace("h2"), pcap=True)
    assert capture.complete
    macs = ["08:00:00:00:01:00", MACS["h2"]]
    assert arrived == [mac.replace(":", "") for mac in macs]
    sent = next(path for path in Path("out/pcap").iterdir()).read_bytes()
    assert bytes.fromhex(arrived[0] + MACS["h1"].replace(":", "")) in sent
    frame = host_frame(parse_topology(TOPOLOGY), "h1", "h3", nic=False)
    assert frame[:6].hex() == arrived[0]


def test_a_capture_says_when_it_begins_and_what_it_wrote(capfd: pytest.CaptureFixture[str]) -> None:
    threads: list[threading.Thread] = []

    def capture() -> None:
        words = ["capture", "s1-s2", "--count", "3", "--out", "link.pcap"]
        threads.append(threading.Thread(target=main, args=(words,)))
        threads[0].start()
        said = ""
        while "capturing s1-s2" not in said:
            assert threads[0].is_alive(), said
            time.sleep(0.01)
            said += capfd.readouterr().err

    stopped(capture)
    threads[0].join()
    assert "3 frames written to link.pcap" in capfd.readouterr().err


def test_a_replay_needs_only_the_folder_of_results(
    network: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From another folder, when the program and its topology have gone."""
    stopped(lambda: None, record="packets")
    assert main(["view", "out", "--out", "here.html"]) == 0
    shutil.move("out", network.parent / "kept")
    shutil.move("here.html", network.parent)
    monkeypatch.chdir(network.parent)
    shutil.rmtree(network)
    assert main(["view", "kept"]) == 0
    assert Path("kept/view.html").read_bytes() == Path("here.html").read_bytes()
    capsys.readouterr()
    Path("kept/job.json").write_text('{"topology": 3}')
    assert main(["view", "kept"]) == 2
    assert "job.json" in capsys.readouterr().err
