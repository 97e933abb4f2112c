# SPDX-License-Identifier: Apache-2.0
"""Every key of every registered spec at its extremes: refused on one line, or planned, soon and in little memory."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli.main import main
from tailrace.experiments.faults.parse import FAULTS
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.workloads.workload import WORKLOADS
from tailrace.hosts.options.transports import TRANSPORTS
from tailrace.schemes.registry import SCHEMES
from tailrace.sim import progress
from tailrace.sim.progress import limit_ns
from tailrace.spec.errors import Error
from tailrace.spec.keys import Key
from tailrace.spec.limits import FACTOR
from tailrace.spec.registry import Registry
from tailrace.spec.units import MOST_BPS, MOST_BYTES, MOST_COUNT, MOST_NS
from tailrace.topology.parse import FAMILIES
from tests.long import some

REGISTRIES: dict[str, Registry[Any]] = {
    "topology": FAMILIES,
    "workload": WORKLOADS,
    "fault": FAULTS,
    "transport": TRANSPORTS,
    "scheme": SCHEMES,
}
POWERS = ((1 << 31) - 1, (1 << 31) + 1, 1 << 53, (1 << 63) - 1, 1 << 64, 10**30)
WHOLE = ("0", "1", "-1", *map(str, POWERS))
BOUNDS = (*map(str, (MOST_COUNT, MOST_NS, MOST_BYTES, MOST_BPS)), f"{MOST_NS + 1}", f"{MOST_BYTES + 1}")
NUMBERS = ("1e-300", "1e300", "1e999", "nan", "inf", "-inf", "1e-9", "0.5")

LEAVES = "leaf-spine:leaves=2,spines=2,hosts=3"
BESIDE: dict[tuple[str, str], dict[str, str]] = {
    ("fault", "ack-loss"): {"rate": "0.1"},
    ("fault", "blackhole"): {"pairs": "0.3"},
    ("fault", "drop"): {"rate": "0.01"},
    ("fault", "link-down"): {"link": "leaf1-spine1"},
    ("fault", "link-slow"): {"link": "leaf1-spine1", "factor": "0.5"},
    ("fault", "switch-restart"): {"switch": "spine1", "for": "20us"},
    ("workload", "incast"): {"degree": "2"},
    ("workload", "paused"): {"load": "0.3", "duration": "50us", "pairs": "1", "servers": "1", "size": "4KiB"},
    ("workload", "replay"): {"host": "h1", "file": "none.pcap"},
    ("scheme", "program"): {"json": "none.json"},
    ("workload", "poisson"): {"load": "0.3", "duration": "50us", "size": "4KiB"},
}
"""What else a spec needs."""

NEEDS = {
    **{key: {"bursts": "1", "every": "20us"} for key in ("bursts", "every", "burst", "bytes", "spots")},
    "long": {"bursts": "1", "every": "20us", "spots": "1"},
    **{key: {"hf2t": "on"} for key in ("min_thr", "max_thr", "stretch", "train", "t", "spare")},
    "kmin": {"kmax": str(MOST_BYTES)},
    "pmax": {"kmax": "100KB"},
}
"""What a key of a workload or a scheme is only given with."""

NETWORKS = {"adversarial": "slim-fly:p=1,q=5", "congested-groups": "dragonfly:p=1,a=3,h=2"} | dict.fromkeys(
    ("spritz", "ugal-l", "valiant", "minimal", "flicr", "ops"), "dragonfly:p=1,a=2,h=1"
)

MEMORY_BYTES = 512 << 20
"""That a plan may take beside what is loaded; planning all of these takes a tenth."""

SECONDS = 20
"""Of the processor, for one plan: generous; what is not estimated first takes hours."""


def keys_of(what: str) -> Iterator[tuple[str, Key]]:
    """Each key of a registry once, with a name that has it."""
    seen = set()
    for entry in REGISTRIES[what]:
        for key in REGISTRIES[what].keys(entry.name):
            if (what == "scheme" and key.help in seen) or "|" in key.values:
                continue
            seen.add(key.help)
            yield entry.name, key


def experiment_with(what: str, name: str, key: str, value: str) -> dict[str, Any]:
    options = dict(BESIDE.get((what, name), {}))
    if what in ("workload", "scheme") and name != "paused":
        options |= NEEDS.get(key, {})
    if key in ("most", "total"):
        options.pop("size", None)
        options |= {"cdf": "websearch"} if key == "most" else {}
    if key == "fraction":
        options.pop("link", None)
    options[key] = value
    spec = f"{name}:" + ",".join(f"{each}={text}" for each, text in options.items())
    usual = {"scheme": "ecmp", "topology": NETWORKS.get(name, LEAVES), "workload": "permutation:size=16KiB"}
    if name in ("mp-rdma", "ack-loss"):
        usual["scheme"] = "mp-rdma" if name == "mp-rdma" else "flowcut"
    return usual | {what: spec}


def cases(what: str) -> list[tuple[str, dict[str, Any]]]:
    listed = []
    for name, key in keys_of(what):
        for value in (*WHOLE, *BOUNDS, *NUMBERS):
            listed.append(
                (f"{what} {name}: {key.name}={value}", experiment_with(what, name, key.name, value))
            )
    return listed


def other_cases() -> list[tuple[str, dict[str, Any]]]:
    """The specs that are not registered, and the keys of an experiment that are numbers."""
    usual: dict[str, Any] = {"scheme": "ecmp", "topology": LEAVES, "workload": "permutation:size=16KiB"}
    listed: list[tuple[str, dict[str, Any]]] = []
    for value in (*WHOLE, *BOUNDS):
        for key in ("xoff", "xon", "headroom", "buffer", "channels", "alpha"):
            more = "buffer=10MiB," if key == "alpha" else ""
            listed.append((f"pfc {key}={value}", usual | {"pfc": f"{more}{key}={value}"}))
        for key in ("latency", "interval"):
            listed.append((f"real {key}={value}", usual | {"controller": f"real:{key}={value}"}))
        for key in ("sample", "window", "mtu", "seed"):
            listed.append((f"{key}={value}", usual | {key: value}))
        for key in ("flows", "reorder", "follow", "time_scale", "seed"):
            number = float(value) if key == "time_scale" else int(value)
            listed.append((f"{key}={value}", usual | {key: [number] if key == "follow" else number}))
        listed.append((f"window={value}BDP", usual | {"window": f"{value}BDP"}))
    for scale in (1.5, 1e3, 1e9):
        listed.append((f"time_scale={scale}", usual | {"time_scale": scale, "sample": f"{MOST_NS}ns"}))
        late = {"fault": f"link-down:link=leaf1-spine1,at={MOST_NS}ns"}
        listed.append((f"time_scale={scale}", usual | {"time_scale": scale, **late}))
    return listed


def _refusal(values: dict[str, Any]) -> str:
    """The error that refuses an experiment; empty where its cost is within what a run can hold."""
    try:
        limit_ns(plan(make(values), "virtual").job)
    except Error as error:
        return str(error)
    return ""


def _all(asked: list[tuple[str, dict[str, Any]]], answers: int) -> None:
    """Plans one after the other, where memory and time are bounded; writes a line each."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    bound = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    with os.fdopen(answers, "w", encoding="utf-8") as out:
        for title, values in asked:
            spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            resource.setrlimit(resource.RLIMIT_CPU, (int(spent) + SECONDS, resource.RLIM_INFINITY))
            try:
                text = _refusal(values)
            except (
                ArithmeticError,
                AttributeError,
                LookupError,
                MemoryError,
                TypeError,
                ValueError,
            ) as error:
                text = f"internal: {type(error).__name__}: {error}"
            out.write(f"{json.dumps([title, text])}\n")
            out.flush()


def answers_to(asked: list[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """By case what is said of it; a case that ends the process is missing."""
    ours, theirs = os.pipe()
    process = os.fork()
    if not process:
        os.close(ours)
        try:
            _all(asked, theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as lines:
        answers = dict(map(json.loads, lines))
    os.waitpid(process, 0)
    return answers


@pytest.fixture(autouse=True)
def usual_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FACTOR, raising=False)


@pytest.mark.parametrize("what", [*REGISTRIES, "others"])
def test_every_key_at_its_extremes(what: str) -> None:
    asked = list(some(other_cases() if what == "others" else cases(what), 3))
    answers = answers_to(asked)
    assert [title for title, _ in asked if title not in answers] == []
    assert [f"{title}: {text}" for title, text in answers.items() if text.startswith("internal")] == []
    assert all("\n" not in text for text in answers.values())
    # an extreme that is refused and one that is not are both there
    assert 0 < sum(map(bool, answers.values())) < len(answers)


@pytest.mark.parametrize("what", REGISTRIES)
def test_no_number_is_without_a_bound(what: str) -> None:
    """A thousand digits, and one more than any kind of number may be, are refused for every whole number."""
    for name, key in keys_of(what):
        if key.values.split()[0] not in ("size", "time", "rate", "number"):
            continue
        for value in ("9" * 1000, str(1 << 64)):
            problem = ""
            try:
                make(experiment_with(what, name, key.name, value))
            except Error as error:
                problem = str(error)
            if key.values.startswith("number or") or key.show(0.5) == "0.5":
                continue  # a decimal number
            assert key.name in problem, (name, key.name, value)


RUN = ("run", "--scheme", "ecmp", "--target", "virtual", "--topology", LEAVES, "--out", "out")
REMOTE = ("--workload", "permutation:size=16KiB,peers=remote")
AWAY = (
    *("--transport", "gbn:rto=100us,backoff=0", *REMOTE, "--controller", "real"),
    *("--fault", "switch-restart:switch=leaf1,for=100s,at=1us"),
)
VAIN = (*REMOTE, "--fault", "blackhole:pairs=0.9,where=leaf1,until=1000000s")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--sample", "9223372036854775807ns"), "sample: '9223372036854775807ns' is more than 8640000s"),
        (("--time-scale", "1000", "--sample", "8640000s"), "sample"),
        (("--workload", "poisson:size=64KiB,load=0.3,duration=9223372036854775807ns"), "at most 8640000s"),
        (("--scheme", "flowcut:queue=100"), "scheme flowcut: queue must hold a frame of 1124 bytes"),
        (("--scheme", "ecmp:queue=1"), "scheme ecmp: queue must hold a frame of"),
        (("--controller", "real:interval=100ns", "--workload", "permutation:size=2GiB"), "probes"),
        # these are known in the run only: samples without events, retransmissions for days, probes of a switch that is away
        (("--sample", "1ns", "--fault", "drop:rate=1"), "samples, and the limit is"),
        (VAIN, "retransmissions while nothing arrives until the fault ends"),
        (AWAY, "controller real: that comes to"),
    ],
)
def test_what_a_run_cannot_hold_is_refused(
    words: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before it or in it, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "STALLED_TIMEOUTS", 1 if words == AWAY else progress.STALLED_TIMEOUTS)
    assert main([*RUN, *words]) == 2
    assert says in capsys.readouterr().err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_so_many_senders_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred million slots were a list for each receiver, of 800 MB."""
    values = {"scheme": "ecmp", "topology": LEAVES, "workload": "poisson:size=64KiB,load=0.3,duration=50us"}
    plans = [
        plan(make(values | {"workload": f"{values['workload']},senders={senders}"}), "virtual")
        for senders in (1_000, 100_000_000)
    ]
    assert plans[0].job.flows == plans[1].job.flows


def test_flows_that_find_another_path_do_not_wait_for_the_end_of_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*RUN, "--fault", "link-down:link=leaf1-spine1,until=1000000s"]) == 0


def test_a_live_controller_of_a_network_that_stays_cut_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its probes never end; the run does when nothing has arrived for long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "STALLED_TIMEOUTS", 1)
    cut = ("--fault", "link-down:link=leaf1-spine1", "--fault", "link-down:link=leaf1-spine2")
    assert main([*RUN, *AWAY[:-2], *cut]) == 1
    errors = capsys.readouterr().err
    assert "nothing arrived for 100us: given up at" in errors
    assert "flows did not finish" in errors.splitlines()[-1]
