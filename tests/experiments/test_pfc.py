# SPDX-License-Identifier: Apache-2.0
"""Priority flow control as an experiment's key: its words, and what it does to an incast."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec import UNSET

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.pfc import HEADROOM_FRAMES, PORT_FRAMES, XON_SHARE, Pfc, parse_pfc
from tailrace.experiments.plan.plan import plan
from tailrace.results.result import Result
from tailrace.sim.network import Network
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError
from tailrace.spec.schema import KeyProblemError
from tailrace.spec.watchdog import NO_WATCHDOG, WATCHDOG, Watchdog
from tailrace.study.task import run
from tailrace.topology import parse_topology
from tailrace.topology.pfc import Thresholds
from tailrace.topology.timing import bdp_bytes

FABRIC = parse_topology("leaf-spine:leaves=2,spines=2,hosts=4,rate=10Gbps,delay=1us")


def parsed(text: str) -> Pfc:
    """The options of PFC, which is not off."""
    options = parse_pfc(text)
    assert isinstance(options, Pfc)
    return options


def test_words() -> None:
    """Each threshold by its name; `default` says nothing of any."""
    assert parsed("xoff=256KiB,xon=200KiB,headroom=64KiB") == Pfc(256 << 10, 200 << 10, 64 << 10)
    assert parsed("xon=1KiB") == Pfc(xon_bytes=1024)
    assert parsed("default") == Pfc()
    assert [parsed(f"storm={word}").storm for word in ("drop", "ignore", "off")] == [
        "drop",
        "ignore",
        "off",
    ]
    assert parsed("buffer=9MB,alpha=1/8") == Pfc(buffer_bytes=9_000_000, alpha=Fraction(1, 8))


@pytest.mark.parametrize(
    "text",
    [
        *("", "xoff", "xoff=0", "xof=1KiB", "xoff=many", "on", "buffer=0", "buffer=big", "alpha=1/8"),
        *("storm=", "storm=on", "storm=5ms"),
        *("buffer=9MB,alpha=0", "buffer=9MB,alpha=1/0", "buffer=9MB,alpha=-1", "buffer=9MB,alpha=2000"),
    ],
)
def test_bad_words(text: str) -> None:
    """One line that names the key."""
    with pytest.raises(KeyProblemError, match=r"^pfc: [^\n]+$"):
        make({"scheme": "ecmp", "pfc": text})


def test_thresholds_that_follow_from_the_topology() -> None:
    """One BDP, a share of it, and what the longest link holds both ways beside frames that had begun."""
    xoff = bdp_bytes(FABRIC, 1500)
    expected = Thresholds(xoff, int(xoff * XON_SHARE), 2 * 1250 + HEADROOM_FRAMES * 1500)
    assert expected == Pfc().of(FABRIC, 1500)
    assert Pfc(1000, 1000, 7).of(FABRIC, 1500) == Thresholds(1000, 1000, 7)
    with pytest.raises(SpecError, match=r"xon .1001 bytes. is above xoff .1000 bytes"):
        Pfc(1000, 1001).of(FABRIC, 1500)


def test_dynamic_thresholds_have_no_other_bound_by_default() -> None:
    """A scheme that predicts pauses and one that does not have the same threshold: alpha times the buffer."""
    values = {
        "topology": "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us",
        "workload": "permutation:size=4KiB",
        "pfc": "buffer=9MB,alpha=1/16",
    }
    for scheme in ("presto", "rlb:variant=presto"):
        pfc = plan(make(values | {"scheme": scheme}), "virtual").job.pfc
        assert pfc is not None
        assert (pfc.xoff_bytes, pfc.alpha) == (562_500, Fraction(1, 16))
    assert parsed("buffer=9MB,alpha=1/16,xoff=64KB").bounded().xoff_bytes == 64_000


def test_programs_obey_later_than_hardware() -> None:
    """What a link carries until a program gets a processor needs room, too: 1.25 bytes a ns."""
    hardware, programs = Pfc().of(FABRIC, 1500), Pfc().of(FABRIC, 1500, 8_000)
    assert programs.headroom_bytes == hardware.headroom_bytes + 10_000


def test_a_buffer_must_have_room_beside_the_headrooms() -> None:
    """A leaf has six ports, and packets go round by one more; each has room for frames that are not data."""
    least = 7 * (1000 + PORT_FRAMES * 1500)
    thresholds = Pfc(1000, 500, 1000, least + 1, Fraction(1, 2)).of(FABRIC, 1500)
    assert thresholds == Thresholds(1000, 500, 1000, least + 1, Fraction(1, 2), PORT_FRAMES * 1500)
    with pytest.raises(
        SpecError,
        match=r"^pfc: a buffer of \d+ bytes must be larger than what is reserved for 7 ports, [^\n]+$",
    ):
        Pfc(1000, 500, 1000, least).of(FABRIC, 1500)


def measure(
    tmp_path: Path,
    look: Callable[[Network], None] | None = None,
    notes: list[str] | None = None,
    **values: object,
) -> Result:
    path = tmp_path / "flows.csv"
    senders = ("h2", "h3", "h5", "h6", "h7", "h8")
    path.write_text("src,dst,bytes,start\n" + "".join(f"{name},h1,256KiB,0\n" for name in senders))
    words = {"scheme": "ecmp:queue=64KiB", "topology": FABRIC.spec, "workload": str(path), "window": "64KiB"}
    backend = VirtualBackend(look)
    notes = [] if notes is None else notes
    return run(
        plan(make({**words, **values}), "virtual"),
        backend,
        lambda progress: notes.append(progress.note) if progress.note else None,
        label="it",
    )


def test_an_incast_overflows_a_queue_without_pfc(tmp_path: Path) -> None:
    """Six windows do not fit into the queue of the last link."""
    result = measure(tmp_path)
    assert isinstance(result.summary.packets.dropped, int)
    assert result.summary.packets.dropped > 0
    assert result.summary.pfc is UNSET


def test_pfc_loses_nothing(tmp_path: Path) -> None:
    """The same incast, with a pause before any queue is full; the pauses show in the summary."""
    result = measure(tmp_path, pfc="xoff=8KiB,xon=4KiB")
    assert result.complete
    assert (result.summary.packets.dropped, result.summary.packets.retransmitted) == (0, 0)
    assert isinstance(result.summary.pfc, dict)
    assert result.summary.pfc["frames"] > 0
    assert 0 < result.summary.pfc["pause_share"] < 1
    assert (result.summary.pfc["lost"], result.summary.pfc["ignored"]) == (0, 0)
    limits = parsed("xoff=8KiB,xon=4KiB").of(FABRIC, 1500)
    assert 0 < result.summary.pfc["headroom_most_bytes"] <= limits.headroom_bytes


def test_a_buffer_that_all_ports_share_loses_nothing(tmp_path: Path) -> None:
    """It pauses when it is full, long before any port has reached its own threshold."""
    result = measure(tmp_path, scheme="ecmp:queue=0", pfc="xoff=1MiB,xon=1MiB,buffer=180KB")
    assert result.complete
    assert result.summary.packets.dropped == 0
    assert isinstance(result.summary.pfc, dict)
    assert result.summary.pfc["frames"] > 0
    assert result.summary.pfc["buffer_most_bytes"] <= 180_000


def test_too_little_headroom_loses_and_says_so(tmp_path: Path) -> None:
    """A hundred bytes, where a frame has more."""
    result = measure(tmp_path, scheme="ecmp:queue=0", pfc="xoff=8KiB,xon=4KiB,headroom=100B")
    assert result.complete, "what is lost is sent again"
    assert isinstance(result.summary.pfc, dict)
    assert isinstance(result.summary.packets.dropped, int)
    assert result.summary.packets.dropped >= result.summary.pfc["lost"] > 0
    assert result.summary.packets.retransmitted != 0


def test_switches_that_are_programs_take_their_time() -> None:
    """On BMv2, whose program stands in for it, as on the native switch."""
    words = {"scheme": "ecmp", "topology": FABRIC.spec, "pfc": "default", "time_scale": 100.0}
    experiment = make(words)
    bmv2, native = plan(experiment, "bmv2").job.pfc, plan(experiment, "native").job.pfc
    virtual = plan(experiment, "virtual").job.pfc
    assert native is not None and virtual is not None
    assert native == bmv2
    assert native.headroom_bytes > virtual.headroom_bytes


@pytest.mark.parametrize(
    ("scheme", "pfc", "message"),
    [
        ("flowcut", "default", "pfc: BMv2's traffic manager has none, and the program flowcut does not"),
        ("ecmp", "buffer=9MB", "pfc: buffer: BMv2 has no memory that ports share"),
    ],
)
def test_what_no_program_can_stand_in_for(scheme: str, pfc: str, message: str) -> None:
    """Refused in one line, before anything starts."""
    experiment = make({"scheme": scheme, "topology": FABRIC.spec, "pfc": pfc})
    with pytest.raises(SpecError, match=f"^{message}[^\n]+$"):
        plan(experiment, "bmv2")


# ---- the watchdog ----

PAUSE = bytes.fromhex("0180c2000001 020000000001 8808 0101 0001 ffff") + bytes(40)


def test_watchdogs_of_switches_grow_with_the_time_scale() -> None:
    """As all times do; those of hosts follow from their ports' rates."""
    for words, scale, expected in (
        ("default", 1, WATCHDOG),
        ("storm=ignore", 5, Watchdog(10**9, 10**9, 1.0, "ignore")),
        ("storm=off", 5, NO_WATCHDOG),
    ):
        watchdog = parsed(words).of(FABRIC, 1500, 0, scale).watchdog
        assert watchdog == expected


def pausing(network: Network) -> None:
    """h1 pauses its port from 100 us on, for as long as it takes 65,535 quanta."""
    host = network.topology.host("h1")
    network.call_at(100_000, lambda: network._net.inject(network._numbers[host.switch], host.port, PAUSE))


@pytest.mark.parametrize(("words", "dropped"), [("", True), (",storm=ignore", False), (",storm=off", False)])
def test_a_host_that_pauses_its_port(tmp_path: Path, words: str, dropped: bool) -> None:
    """Is found; the run tells when, and what was dropped, and the summary counts it."""
    notes: list[str] = []
    result = measure(tmp_path, pausing, notes, pfc=f"xoff=8KiB,xon=4KiB{words}")
    assert result.complete
    counts = result.summary.pfc
    assert isinstance(counts, dict)
    events = [(event.kind, event.subject) for event in result.events]
    if words == ",storm=off":
        assert "storms" not in counts
        assert (events, notes) == ([], [])
        return
    assert notes[0] == result.events[0].text
    assert notes[-1].startswith("PFC storms (pauses held a port for too long): 1; ")
    assert counts["storms"] == 1
    assert (counts["storm_dropped"] > 0) == dropped
    assert isinstance(result.summary.packets.dropped, int)
    assert result.summary.packets.dropped >= counts["storm_dropped"]
    assert events[0] == ("pfc-storm", "leaf1-h1")
    assert result.events[0].facts["time_ns"] >= 100_000 + 7_373
    assert "PFC storm; port=1 priority=0" in result.events[0].text


def test_a_run_without_storms_says_nothing_of_them(tmp_path: Path) -> None:
    """And is the same, packet by packet, as one without a watchdog."""
    guarded, plain = (measure(tmp_path, pfc=f"xoff=8KiB,xon=4KiB,storm={word}") for word in ("drop", "off"))
    assert guarded.summary.trace_sha256 == plain.summary.trace_sha256
    assert guarded.summary.pfc == plain.summary.pfc
    assert guarded.events == ()
