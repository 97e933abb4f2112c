# SPDX-License-Identifier: Apache-2.0
"""`tailrace run --ranks`: the same folder for every number of ranks, and nothing left when one of them dies."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

import tailrace
from tailrace.cli.main import main
from tailrace.controller import runfile
from tailrace.experiments.plan.experiment import make
from tailrace.results.result import read_summary
from tailrace.results.summary import OF_THE_RUN_ITSELF
from tailrace.sim import run as virtual_run
from tailrace.sim.network.ranks import RankLostError, SharedMemory
from tailrace.sim.ranks import NAME, RankJob
from tailrace.sim.run import PausedRun, run_part
from tailrace.spec import SpecError
from tests.long import ALL
from tests.sim.network.rank_threads import leave, transports

ROOT = Path(__file__).parents[2]
LEAF_SPINE = "--topology leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
SMALL = f"--scheme ecmp {LEAF_SPINE} --workload permutation:size=16KiB,peers=remote"
LONG = f"--scheme ecmp {LEAF_SPINE} --workload permutation:size=1GiB,peers=remote"
FAT_TREE = "--topology fat-tree:k=4 --workload permutation:size=32KiB --seed 1"
DRAGONFLY = "--topology dragonfly:p=1,a=4,h=1 --workload permutation:size=16KiB --seed 1"
LOSSLESS = "--pfc default --transport dcqcn"
WAIT_S = 300.0


@contextmanager
def in_threads(part: RankJob, ranks: int) -> Iterator[SharedMemory]:
    """In place of other processes."""

    def go(transport: SharedMemory, sockets: list[socket.socket]) -> None:
        try:
            run_part(part, transport, _no_stop)
        except RankLostError:
            pass
        except BaseException:
            leave(sockets)
            raise

    with transports(ranks) as (first, *remaining):
        threads = [threading.Thread(target=go, args=arguments) for arguments in remaining]
        for thread in threads:
            thread.start()
        try:
            yield first[0]
        except BaseException:
            leave(first[1])
            raise
        finally:
            for thread in threads:
                thread.join()


def _no_stop(_standing: PausedRun) -> None:
    raise AssertionError("nobody asked for that")


def measured(words: str, ranks: int, folder: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All files but the summary, and the summary but for what it says of the run itself."""
    options = f"--target virtual --ranks {ranks} --out {folder} --json"
    assert main(["run", *shlex.split(f"{words} {options}")]) in (0, 1)
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    assert summary.get("ranks", 1) == ranks
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "summary.json"
    }
    return files, {key: value for key, value in summary.items() if key not in OF_THE_RUN_ITSELF}


@pytest.mark.parametrize(
    ("words", "several"),
    [
        (f"{SMALL} --pcap --sample 5us --follow 1 --gaps", (2, 3, 4)),
        (
            f"--scheme flowcut:variant=full {FAT_TREE} --fault link-down:fraction=0.1,at=20us,until=60us",
            (2, 3),
        ),
        (f"--scheme flowcut:variant=full {FAT_TREE} --fault drop:rate=0.01 --pcap --sample 10us", (3,)),
        (f"--scheme letflow {FAT_TREE} --fault link-slow:fraction=0.1,factor=0.1,at=5us --sample 7us", (4,)),
        (f"--scheme ecmp {FAT_TREE} --fault switch-restart:switch=agg1_1,at=20us,for=20us", (2,)),
        # a switch that is away at the end has no counters; its rank reports what its other switches have counted
        (f"{SMALL} --fault switch-restart:switch=spine1,at=10us,for=10ms", (2,)),
        (f"--scheme flowcut:variant=nic {FAT_TREE} --fault blackhole:pairs=0.3,where=core", (2,)),
        (f"--scheme spritz:variant=scout {DRAGONFLY} --fault link-down:fraction=0.05,at=10us", (2, 4)),
        ("--scheme minimal --topology slim-fly:p=1,q=5 --workload random:flows=20,size=8KiB --seed 3", (4,)),
        (f"--scheme letflow:hf2t=99 {FAT_TREE} --transport sr --gaps", (2,)),
        (f"--scheme flowcut {LEAF_SPINE} --workload alltoall:size=16KiB,window=1", (2, 3)),
        (f"--scheme ecmp {LEAF_SPINE} --workload allreduce:hosts=2,size=16KiB,background=1MiB", (2,)),
        (f"--scheme ecmp {LEAF_SPINE} --workload incast:degree=3,size=64KiB {LOSSLESS}", (2, 4)),
        (
            f"--scheme rlb:variant=drill {FAT_TREE} {LOSSLESS} --fault blackhole:pairs=0.3,where=core"
            " --fault link-down:fraction=0.05,at=30us,until=90us",
            (2, 4),
        ),
    ],
)
def test_the_same_folder(
    words: str, several: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flow records, counters, samples, paths, captures, events, gaps and the trace hash."""
    monkeypatch.setattr(virtual_run, "other_ranks", in_threads)
    single_rank = measured(words, 1, tmp_path / "1")
    for ranks in several:
        assert measured(words, ranks, tmp_path / str(ranks)) == single_rank


def test_what_ranks_did(tmp_path: Path) -> None:
    """They met equally often, and handed frames across."""
    words = f"run --target virtual --json --scheme ecmp {FAT_TREE} --ranks 3 --out {tmp_path}"
    assert main(shlex.split(words)) == 0
    summary = read_summary(tmp_path / "summary.json")
    assert isinstance(summary.by_rank, tuple) and isinstance(summary.traffic_s, float)
    assert len(summary.by_rank) == summary.ranks == 3 and 0 < summary.traffic_s <= summary.wall_s
    assert len({rank_summary["meetings"] for rank_summary in summary.by_rank}) == 1
    header_bytes = 14
    for rank_summary in summary.by_rank:
        assert rank_summary["meetings"] > 1
        assert rank_summary["bytes"] > rank_summary["frames"] * header_bytes > 0
        assert rank_summary["waited_s"] >= 0
        assert rank_summary["cpu_s"] > 0


def test_digests_reach_all_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RLB's switches tell of failures, and its controller has other switches than theirs act on them."""
    monkeypatch.setattr(virtual_run, "other_ranks", in_threads)
    topology = "leaf-spine:leaves=3,spines=4,hosts=4,rate=40Gbps,delay=2us"
    words = f"--scheme rlb:variant=drill,fault=1,margin=8us --topology {topology} --workload incast:degree=8,size=128KiB"
    single_rank = measured(f"{words} {LOSSLESS} --seed 1", 1, tmp_path / "1")
    assert b"failure-alert" in single_rank[0]["events.jsonl"]
    assert measured(f"{words} {LOSSLESS} --seed 1", 3, tmp_path / "3") == single_rank


# ---- processes ----


def test_processes_give_the_same(tmp_path: Path) -> None:
    """Forked, and where this process has threads, whose locks a copy would keep for ever, started anew."""
    words = f"{SMALL} --pcap --sample 5us"
    single_rank = measured(words, 1, tmp_path / "1")
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert measured(words, 2, tmp_path / "started") == single_rank
    finally:
        over.set()
        thread.join()
    assert not children(os.getpid())
    with started(tmp_path, f"{words} --ranks 2") as process:
        _, stderr = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, stderr
    assert (tmp_path / "out" / "flows.parquet").read_bytes() == single_rank[0]["flows.parquet"]


def children(parent: int) -> dict[str, int]:
    """The process ids of ranks that a process has started, by rank; that of a zombie is under Z."""
    pids = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            start, _, rest = (path / "stat").read_text().rpartition(")")
        except OSError:  # it has just gone
            continue
        name, (state, ppid) = start.partition("(")[2], rest.split()[:2]
        if int(ppid) != parent:
            continue
        if state == "Z":
            pids[state] = int(path.name)
        elif name.startswith(NAME):
            pids[name.removeprefix(NAME)] = int(path.name)
    return pids


def until(happened: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        result = happened()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError("it never happened")


@contextmanager
def started(folder: Path, words: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own, its ranks in ours once it has gone."""
    command = [sys.executable, "-m", "tailrace.cli.main", "run", *shlex.split(words), "--target", "virtual"]
    with subprocess.Popen(
        [*command, "--out", str(folder / "out")],
        text=True,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def gone(pid: int) -> bool:
    """Whether a process has ended, buried or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_rank_that_dies_ends_the_run(tmp_path: Path) -> None:
    """One line, exit status 1, no process, no file."""
    with started(tmp_path, f"{LONG} --ranks 3 --pcap") as process:
        pids = until(lambda: len(pids := children(process.pid)) == 2 and pids)
        os.kill(pids["2"], signal.SIGKILL)
        out, stderr = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (1, "")
    assert stderr.splitlines()[-1] == "tailrace: rank 2 was ended by SIGKILL"
    assert "Traceback" not in stderr
    assert all(gone(pid) for pid in pids.values())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_control_c_ends_all_ranks(tmp_path: Path) -> None:
    with started(tmp_path, f"{LONG} --ranks 2") as process:
        other = until(lambda: children(process.pid).get("1"))
        process.send_signal(signal.SIGINT)
        out, stderr = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (130, "")
    assert stderr.splitlines()[-1] == "tailrace: interrupted; no results were written"
    assert "Traceback" not in stderr
    until(lambda: gone(other))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_ranks_end_when_the_first_is_killed(tmp_path: Path) -> None:
    """Whatever they are doing."""
    with started(tmp_path, f"{LONG} --ranks 2") as process:
        other = until(lambda: children(process.pid).get("1"))
        process.kill()
        until(lambda: gone(other))


def test_a_stopped_run_is_looked_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rank serves its own switches, and the run file leads to all of them."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    words = f"{SMALL.replace('ecmp', 'flowcut:buckets=16')} --seed 4"
    with started(tmp_path, f"{words} --ranks 2 --stop-at 20us --json") as process:
        assert process.stderr is not None and process.stdin is not None
        announcement = next(line for line in process.stderr if "switches serve" in line)
        assert "stopped at 20us; 4 switches" in announcement
        addresses = {switch.address for switch in runfile.read().switches.values()}
        assert len(addresses) == 2 and all(address in announcement for address in addresses)
        for command in ("tables", "flows", "queues", "counters", "diff"):
            assert main([command, "-o", "json"]) == 0
            rows = json.loads(capsys.readouterr().out)
            if command != "diff":
                assert {row["switch"] for row in rows} >= {"leaf1", "leaf2"}, command
            else:
                assert rows == []
        out, _ = process.communicate("\n", timeout=WAIT_S)
    assert process.returncode == 0
    _, plain = measured(words, 1, tmp_path / "1")
    assert json.loads(out)["trace_sha256"] == plain["trace_sha256"]
    assert json.loads(out)["packet_hops"] == plain["packet_hops"]


def test_python_reaches_all_switches_of_a_stopped_run() -> None:
    """Those of the first rank in its network, the others by gRPC where they say."""
    entries: dict[str, int] = {}
    request = p4r.ReadRequest(entities=[p4r.Entity(table_entry=p4r.TableEntry())])

    def look(standing: PausedRun) -> None:
        network = standing.network
        for switch in network.topology.switches:
            request.device_id = switch.id
            if network.has(switch.name):
                responses = list(network.p4rt(switch.name).read(request))
            else:
                with grpc.insecure_channel(standing.remote_addresses[switch.name]) as channel:
                    responses = list(p4r_grpc.P4RuntimeStub(channel).Read(request, timeout=WAIT_S))
            entries[switch.name] = sum(len(each.entities) for each in responses)

    words = {"scheme": "ecmp", "topology": LEAF_SPINE.split()[1], "workload": "permutation:size=16KiB"}
    result = tailrace.run(make({**words, "target": "virtual"}), ranks=2, stop_at=["5us"], at_stop=look)
    assert result.summary.ranks == 2
    assert set(entries) == {"leaf1", "leaf2", "spine1", "spine2"} and min(entries.values()) > 0


# ---- MPI ----

RANKS = 3 if ALL else 2
"""They wait for each other without a rest: three of them take long on two cores."""

MPIEXEC = Path(sys.executable).parent / "mpiexec"


def mpiexec(*ranks: str) -> subprocess.CompletedProcess[str]:
    """Runs ranks that share their words, or have words each."""
    if not MPIEXEC.exists() or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("no mpi4py, or no mpiexec beside Python (tailrace[mpi], mpich)")
    each = [[sys.executable, "-m", "tailrace.cli.main", "run", *shlex.split(words)] for words in ranks]
    command = [word for rank_words in each for word in (":", "-n", "1", *rank_words, "--ranks", "mpi")][1:]
    return subprocess.run(
        [str(MPIEXEC), *command], text=True, capture_output=True, check=False, timeout=WAIT_S, cwd=ROOT
    )


def test_mpi_gives_the_same(tmp_path: Path) -> None:
    """One of the ranks writes and shows; captures are one file. Whether NICs are compiled is each process's own."""
    words = f"{SMALL} --pcap --sample 5us --target virtual"
    process = mpiexec(*[f"{words} --out {tmp_path / 'mpi'} --json"] * RANKS)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["ranks"] == RANKS
    files, summary = measured(words, 1, tmp_path / "1")
    assert {name: (tmp_path / "mpi" / name).read_bytes() for name in files} == files
    merged = json.loads((tmp_path / "mpi" / "summary.json").read_text("utf-8"))
    differs = {*OF_THE_RUN_ITSELF, "nics"}
    assert {key: value for key, value in merged.items() if key not in differs} == {
        key: value for key, value in summary.items() if key not in differs
    }


class _Alone:
    """Ranks that somebody else has started, of which there is one."""

    rank = 0
    ranks = 1

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        return messages


def test_ranks_of_others_do_not_stop() -> None:
    with pytest.raises(SpecError, match=r"^--stop-at: only ranks that this process has started can pause$"):
        tailrace.run("basic", target="virtual", ranks=_Alone(), stop_at=["5us"])
    topology = LEAF_SPINE.split()[1]
    words = {"scheme": "ecmp", "topology": topology, "workload": "permutation:size=16KiB"}
    chosen = make({**words, "target": "virtual"})
    first, again = tailrace.run(chosen), tailrace.run(chosen, ranks=_Alone())
    assert again.summary.trace_sha256 == first.summary.trace_sha256


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--seed 1", "--seed 2"], "ranks: rank 1 has other specs, files or another version of Tailrace"),
        (["--seed 1", "--topology fat-tree:k=5"], "rank 1: topology fat-tree: k must be even"),
    ],
)
def test_mpi_ranks_that_fail(words: list[str], line: str, tmp_path: Path) -> None:
    """All of them end; the first says why, and no result is left."""
    process = mpiexec(*[f"{SMALL} --target virtual --out {tmp_path / 'out'} {each}" for each in words])
    assert process.returncode in (1, 2)
    errors = [text for text in process.stderr.splitlines() if text.startswith("tailrace: ")]
    assert errors and line in errors[0], process.stderr
    assert "Traceback" not in process.stderr
    assert list(tmp_path.iterdir()) == []
