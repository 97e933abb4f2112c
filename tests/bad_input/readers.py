# SPDX-License-Identifier: Apache-2.0
"""Every reader of text and files, with good examples of what it reads, and mutants of those.

Whatever a mutant is, its reader takes it or says in one line why not, in bounded time; and what was taken is
the same when its own words are read again.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from checks.soak.generate import draw
from tailrace.controller import runfile
from tailrace.experiments.faults.parse import parse_fault
from tailrace.experiments.plan.axes import parse_axes
from tailrace.experiments.plan.controller import parse_controller
from tailrace.experiments.plan.experiment_file import read_experiment
from tailrace.experiments.plan.nic import parse_window
from tailrace.experiments.plan.pfc import parse_pfc
from tailrace.experiments.plan.seeds import parse_seeds
from tailrace.experiments.workloads.flow_file import read_flows
from tailrace.experiments.workloads.sizes import find_cdf
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.hosts.driver.job import read_job as read_hosts_job
from tailrace.hosts.options.transports import parse_transport
from tailrace.p4rt import programs
from tailrace.p4rt.connection import load_p4info
from tailrace.p4rt.entry_files import read_request, read_updates
from tailrace.papers.claims.expect import parse_expectation
from tailrace.papers.model import read_paper_file
from tailrace.results.result import read_summary
from tailrace.results.rows import read_rows as read_flow_rows
from tailrace.results.run_files import read_events
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.job import read_job, write_job
from tailrace.spec import units
from tailrace.spec.errors import Error
from tailrace.spec.watchdog import parse_watchdog
from tailrace.study.store.store import read_records
from tailrace.switch.daemon.lossless import parse_buffer, parse_port_watchdog
from tailrace.switch.daemon.lossless import parse_pfc as parse_switch_pfc
from tailrace.switch.daemon.options import parse_depth, parse_rate
from tailrace.topology import parse_topology
from tests.bad_input import files, results
from tests.bad_input.case import MOST_LINE, ROOT, SMALLEST
from tests.formats.examples import TEXTS

MOST_S = 20.0
"""CPU time of one input."""

EXAMPLES = 60
"""Seeds of the soak test, of which the words are examples."""

_NUMBER = re.compile(rb"\d+")
_EDGES = (
    b"0",
    b"-1",
    b"1",
    b"65535",
    b"4294967296",
    b"18446744073709551616",
    b"1e400",
    b"nan",
    b"0.1",
    b"9" * 400,
)
_ODD = (
    *(b"", b"\0", b"\n", b"\r", b"\x1b[31m", b"\xff\xfe", b"\xc3\xa9", b"\xe2\x80\xae", b" " * 70),
    *(b"=", b":", b",", b"{", b"[", b'"', b"..", b"/", b"%"),
)
_SCALARS: tuple[Any, ...] = (None, True, -1, 0, 1 << 64, 1.5, "", "x", "\x1b[2J", "9" * 400)
_VALUES: tuple[Any, ...] = (*_SCALARS, [], {}, [[]], [None], {"a": {}})


@dataclass(frozen=True, slots=True)
class Reader:
    """read: takes a text, or with `name` the path of a file; raises `refuses`.
    examples: of what it takes, or a part of it
    again: the words of what was read, which mean the same
    """

    read: Callable[[Any], Any]
    examples: Callable[[], list[bytes]]
    name: str = ""
    again: Callable[[Any], str] | None = None
    refuses: type[Exception] = Error


@cache
def _words() -> dict[str, list[bytes]]:
    """By key, the words of some scenarios."""
    words: dict[str, set[bytes]] = {}
    for seed in range(1, EXAMPLES + 1):
        for key, value in draw(seed).settings.items():
            for word in value if isinstance(value, list) else [value]:
                words.setdefault(key, set()).add(str(word).encode())
    return {key: sorted(values) for key, values in words.items()}


def _of(key: str) -> Callable[[], list[bytes]]:
    return lambda: _words()[key]


def _these(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in texts]


def _kept(pattern: str) -> Callable[[], list[bytes]]:
    """Files of this repository."""

    def read() -> list[bytes]:
        contents = [path.read_bytes() for path in sorted(ROOT.glob(pattern))]
        assert contents, pattern
        return contents

    return read


@cache
def _small_run() -> dict[str, bytes]:
    """The files of the result of a small run."""
    more = ("--fault", "drop:rate=0.1", "--gaps", "--sample", "1us", "--controller", "real")
    with tempfile.TemporaryDirectory() as folder:
        tailrace = Path(sys.executable).with_name("tailrace")
        command = [str(tailrace), "run", "--scheme", "ecmp", *SMALLEST, *more]
        subprocess.run([*command, "--out", folder], capture_output=True, check=True)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _run(name: str) -> Callable[[], list[bytes]]:
    return lambda: [_small_run()[name]]


def _documents(*documents: Any) -> Callable[[], list[bytes]]:
    return lambda: [json.dumps(document).encode() for document in documents]


def _binary_p4info() -> list[bytes]:
    texts = _kept("p4src/build/*.p4info.txtpb")()
    return [*texts, *(text_format.Parse(text, p4i.P4Info()).SerializeToString() for text in texts)]


def _entries(path: Path) -> list[p4r.Update]:
    """Entries by names, for the program that they are for."""
    return list(read_updates(path, programs.read(ROOT / "tests/programs/build/basic_l3.json")))


_COMMANDS = (
    "table_add route forward 10.0.1.0/24 => 02:00:00:00:00:01 1\ntable_modify route forward 0 7 2\n",
    "mc_mgrp_create 1\nmc_node_create 0 1 2\nmc_node_associate 1 0\nmirroring_add_mc 5 1\nset_queue_rate 1\n",
)


def _write_request() -> list[bytes]:
    request = p4r.WriteRequest(updates=_entries(ROOT / "examples/router/entries.json"))
    return [text_format.MessageToString(request).encode()]


def _events() -> list[bytes]:
    event = {"event": "link-down", "subject": "leaf1-spine1", "text": "leaf1-spine1: link down", "n": 1}
    return [(json.dumps(event) + "\n").encode() * 2]


def _option(read: Callable[[str], Any], *texts: str) -> Reader:
    """The type of an option of the switch: argparse makes a line of each ValueError."""
    return Reader(read, _these(*texts), refuses=ValueError)


def _jobs() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "JOB.json"
        jobs = []
        for seed in range(1, 6):
            write_job(draw(seed).plan().job, path)
            jobs.append(path.read_bytes())
        return jobs


READERS: dict[str, Reader] = {
    "scheme": Reader(parse_scheme, _of("scheme")),
    "topology": Reader(parse_topology, _of("topology"), again=lambda parsed: parsed.spec),
    "workload": Reader(parse_workload, _of("workload"), again=lambda parsed: parsed.spec),
    "fault": Reader(parse_fault, _of("fault"), again=lambda parsed: parsed.spec),
    "transport": Reader(parse_transport, _of("transport")),
    "pfc": Reader(
        parse_pfc,
        _these(
            "default",
            "xoff=256KiB,xon=200KiB,headroom=64KiB",
            "buffer=9MB,alpha=1/8",
            "storm=drop",
            "channels=2,deadlock=stop",
        ),
    ),
    "watchdog": Reader(parse_watchdog, _these("detect=100us,restore=1ms,action=drop", "off")),
    "controller": Reader(parse_controller, _these("ideal", "real", "real:latency=10us")),
    "window": Reader(parse_window, _these("64KiB", "1.5BDP")),
    "seeds": Reader(parse_seeds, _these("1..5", "1,2,7", "3")),
    "axes": Reader(
        lambda text: parse_axes([text]), _these("scheme=ecmp,letflow", "seed=1..4", "workload.size=1KiB,2KiB")
    ),
    "expectation": Reader(parse_expectation, _these("< 1.5", ">= 0", "0.5..2", "== 0")),
    "rate": Reader(units.parse_rate_bps, _these("10Gbps", "0.5Mbps")),
    "time": Reader(units.parse_time_ns, _these("10us", "1.5ms", "3ns")),
    "size": Reader(units.parse_bytes, _these("1KiB", "1.5MB", "7B")),
    "alpha": Reader(units.parse_alpha, _these("1/8", "2", "0.5")),
    "switch-pfc": _option(
        parse_switch_pfc,
        "3,4:xoff=96KiB,xon=64KiB,headroom=48KiB",
        "3:xoff=1000,xon=500,headroom=0,rise=5",
    ),
    "switch-watchdog": _option(
        parse_port_watchdog, "detect=200ms,restore=200ms,share=100%,action=drop", "1,2:host", "off"
    ),
    "switch-buffer": _option(parse_buffer, "1MiB,alpha=1/2,port=1KiB", "9MB"),
    "switch-rate": _option(parse_rate, "100Mbps", "2.5Gbps", "1000pps"),
    "switch-depth": _option(parse_depth, "64", "64pkts", "64KiB"),
    "experiment": Reader(
        read_experiment,
        lambda: [files.toml(files.EXPERIMENT).encode(), *_kept("tailrace/experiments/presets/*.toml")()],
        "x.toml",
    ),
    "paper": Reader(read_paper_file, _kept("tailrace/papers/files/*.toml"), "x.toml"),
    "distribution": Reader(
        lambda path: find_cdf(str(path)), _kept("tailrace/experiments/workloads/**/*.toml"), "x.toml"
    ),
    "flows": Reader(
        read_flows, _these("src,dst,bytes,start,sport,after\nh1,h2,1KiB,0,1000,\nh2,h1,2,1us,,0\n"), "x.csv"
    ),
    "network": Reader(parse_topology, _documents(files.TOPOLOGY), "x.json"),
    **{
        f"network-{name}": Reader(parse_topology, _these(*TEXTS[name]), "x.file")
        for name in ("node-link", "hpcc-topology", "htsim-topo")
    },
    **{
        f"flows-{name}": Reader(read_flows, _these(*TEXTS[name]), "x.file")
        for name in ("hpcc-flows", "htsim-cm", "goal")
    },
    "distribution-columns": Reader(lambda path: find_cdf(str(path)), _these(*TEXTS["sizes"]), "x.file"),
    "run-file": Reader(runfile.read, _documents(files.RUN_FILE), "run.json"),
    "job": Reader(read_job, _jobs, "job.json"),
    "hosts-job": Reader(read_hosts_job, _documents(results.JOB), "job.json"),
    "entries": Reader(_entries, _kept("examples/router/*.json"), "x.json"),
    "commands": Reader(_entries, _these(*_COMMANDS), "x.txt"),
    "write-request": Reader(read_request, _write_request, "x.txtpb"),
    "p4info": Reader(load_p4info, _binary_p4info, "x.txtpb"),
    "kept-runs": Reader(read_records, _kept("docs/results/mp-rdma.parquet"), "mp-rdma.parquet"),
    "summary": Reader(read_summary, _run("summary.json"), "summary.json"),
    "flow-table": Reader(read_flow_rows, _run("flows.parquet"), "flows.parquet"),
    "events": Reader(lambda path: read_events(path.parent), _events, "events.jsonl"),
}
"""By name. Programs of switches and messages of P4Runtime have fuzzers of their own (tests/switch/fuzz)."""


@cache
def examples_of(name: str) -> list[bytes]:
    """The examples of a reader."""
    return READERS[name].examples()


def mutant(rng: random.Random, examples: list[bytes]) -> bytes:
    """An example, of which something else was made."""
    content = rng.choice(examples)
    if rng.random() < 0.3:
        content = _other_values(rng, content)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        content = rng.choice(_CHANGES)(rng, content, examples)
    return content


def _span(rng: random.Random, content: bytes) -> tuple[int, int]:
    first = rng.randint(0, len(content))
    return first, min(len(content), first + rng.choice((0, 1, 2, 5, 20, 200)))


def _cut(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    first, last = _span(rng, content)
    return content[:first] + content[last:]


def _twice(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    first, last = _span(rng, content)
    return content[:last] + content[first:last] * rng.choice((1, 1, 50)) + content[last:]


def _insert(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    first, last = _span(rng, content)
    return content[:first] + rng.choice(_ODD) + content[last if rng.random() < 0.5 else first :]


def _from_another(rng: random.Random, content: bytes, examples: list[bytes]) -> bytes:
    other = rng.choice(examples)
    first, last = _span(rng, content)
    begin, end = _span(rng, other)
    return content[:first] + other[begin:end] + content[last:]


def _number(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    matches = list(_NUMBER.finditer(content))
    if not matches:
        return content
    match = rng.choice(matches)
    return content[: match.start()] + rng.choice(_EDGES) + content[match.end() :]


def _flip(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    if not content:
        return b"x"
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def _end(rng: random.Random, content: bytes, _: list[bytes]) -> bytes:
    return content[: rng.randint(0, len(content))]


_CHANGES = (_cut, _twice, _insert, _from_another, _number, _number, _flip, _end)


def _other_values(rng: random.Random, content: bytes) -> bytes:
    """JSON in which a value is another one."""
    try:
        document = json.loads(content)
    except ValueError:
        return content
    places = list(_places(document))
    if not places:
        return content
    where, key = rng.choice(places)
    if rng.random() < 0.2:
        del where[key]
    else:
        where[key] = rng.choice(_VALUES)
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def check(reader: Reader, content: bytes, folder: Path) -> bool:
    """Whether a reader takes a content.

    Raises:
        AssertionError: its line is none, it takes too long, or what it has read means something else.
        Exception: whatever it lets out.
    """
    begun_s = time.process_time()
    given: str | Path = content.decode("utf-8", "surrogateescape")
    if reader.name:
        given = folder / reader.name
        given.write_bytes(content)
        if reader.read is parse_topology:
            given = str(given)
    try:
        parsed = reader.read(given)
    except reader.refuses as error:
        line = str(error)
        assert reader.refuses is not Error or (line.isprintable() and 0 < len(line) < MOST_LINE), ascii(line)
        return False
    finally:
        took_s = time.process_time() - begun_s
        assert took_s < MOST_S, f"{took_s:.1f} s"
    if reader.again is not None:
        words = reader.again(parsed)
        assert reader.again(reader.read(words)) == words
    return True
