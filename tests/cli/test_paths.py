# SPDX-License-Identifier: Apache-2.0
"""`tailrace paths` where endpoints choose among paths: EV lists, and whether live switches lead along them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.controller import runfile
from tailrace.controller.runfile import RunFile, RunSwitch
from tailrace.p4rt.programs import load
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import parse_topology
from tests.cli.conftest import Command, Outcome
from tests.controller.inspect.served import ServedSwitch, install_scheme, served
from tests.schemes.planned import intent

WORDS = "dragonfly:p=2,a=2,h=1,rate=10Mbps,local=25us,global=500us,host=25us"
SCHEME = "spritz:scale=2,frame=1250"
PAIR = ("h1", "h12")
Steered = Callable[..., Outcome]


def write_run_file(path: Path, places: dict[str, ServedSwitch], scheme: str) -> None:
    run_switches = {
        name: RunSwitch(place.address, place.device_id, "spritz") for name, place in places.items()
    }
    runfile.write(path, RunFile(WORDS, scheme, "native", 1000, None, run_switches))


@pytest.fixture(scope="module")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, ServedSwitch]]]:
    """Three groups of two switches with two hosts each, and the run file."""
    topology = parse_topology(WORDS)
    with served(len(topology.switches)) as places:
        by_name = {switch.name: place for switch, place in zip(topology.switches, places, strict=True)}
        install_scheme(topology, SCHEME, by_name)
        path = tmp_path_factory.mktemp("run") / "run.json"
        write_run_file(path, by_name, SCHEME)
        yield path, by_name


@pytest.fixture
def steered(command: Command, switches: tuple[Path, dict[str, ServedSwitch]]) -> Steered:
    """Runs `tailrace paths` on them."""
    return lambda *words: command("paths", *words, "--run", str(switches[0]))


def test_lists(steered: Steered) -> None:
    """Both paths from the first host to the last: a minimal one of 3 links, and a detour by global links."""
    done = steered(*PAIR, "-o", "json")
    assert (0, "") == (done.status, done.err)
    minimal, detour = done.rows
    assert {
        "src": "h1", "dst": "h12", "ev": 1, "ev1": 0, "ev2": 1, "links": 3, "local": 2, "global": 1,
        "latency_ns": 3 * 1e6 + 2 * 25e3 + 500e3, "category": "minimal", "weight": minimal["weight"],
        "switches": ["r1_1", "r1_2", "r3_1", "r3_2"],
    } == minimal  # fmt: skip
    assert ("non-minimal", 1, 2, ["r1_1", "r2_2", "r2_1", "r3_2"]) == tuple(
        detour[key] for key in ("category", "local", "global", "switches")
    )
    assert 1.0 == detour["weight"]
    assert minimal["weight"] == pytest.approx(2 * detour["latency_ns"] / minimal["latency_ns"])


def test_a_list_is_of_switches(steered: Steered) -> None:
    """All hosts of a switch share it, so it is shown once; a filter sees its cells."""
    everything = steered("-o", "json").rows
    assert {("h1", "h3"), ("h1", "h5")} < {(row["src"], row["dst"]) for row in everything}
    assert not any(row["src"] == "h2" and row["dst"] != "h1" for row in everything)
    assert 6 + 2 * 6 * 4 == len(everything)
    direct = steered("-o", "json", "--where", "links == 1 and category == minimal").rows
    assert {1} == {row["links"] for row in direct}
    assert 6 + 6 == len(direct)


def test_check(steered: Steered) -> None:
    """All paths of all pairs, walked through the entries of the switches."""
    done = steered("--check", "-o", "json")
    assert (0, "") == (done.status, done.err)
    assert (6 + 2 * 6 * 4, 0) == tuple(sum(row[key] for row in done.rows) for key in ("walked", "different"))
    done = steered(*PAIR, "--check", "-o", "json")
    assert [2] == [row["walked"] for row in done.rows]


def test_sample(steered: Steered) -> None:
    """So many paths of pairs that are drawn, the same ones every time."""
    first, second = (steered("--check", "--sample", "7", "-o", "json") for _ in range(2))
    assert (0, 7) == (first.status, sum(row["walked"] for row in first.rows))
    assert first.out == second.out


def test_differences(command: Command, switches: tuple[Path, dict[str, ServedSwitch]]) -> None:
    """Where default routes lead around a link, one line says where a path goes instead; exit status 1."""
    topology, (path, places) = parse_topology(WORDS), switches
    link = next(link for link in topology.links if link.a[:2] != link.b[:2])
    repaired = parse_scheme(f"{SCHEME},repair=on")
    down = frozenset({(link.a, link.a_port)})
    for name, intended in intent(topology, repaired, target("native"), down).items():
        places[name].install(load("spritz"), intended.entities)
    try:
        done = command("paths", "--check", "--run", str(path))
    finally:
        install_scheme(topology, SCHEME, places)
    assert (1, 1) == (done.status, done.err.count("\n"))
    assert ": EV " in done.err
    assert " goes " in done.err


def test_by_address(command: Command, switches: tuple[Path, dict[str, ServedSwitch]]) -> None:
    """Without a run file the switch's tables say that there are lists."""
    places = [f"--address={name}={place.address}@{place.device_id}" for name, place in switches[1].items()]
    done = command("paths", *PAIR, *places, "--topology", WORDS, "-o", "json")
    assert (0, [1, 256]) == (done.status, [row["ev"] for row in done.rows])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["h1", "h12", "--sample", "3"], "--sample goes with --check"),
        (["h1", "h1", "--check"], "SRC and DST are the same host"),
        (["h1", "h99", "--check"], "no host 'h99'"),
        (["h1", "h2"], "h1 and h2 are on one switch: there is nothing to choose"),
    ],
)
def test_bad_words(steered: Steered, words: list[str], message: str) -> None:
    """One line, exit status 2."""
    done = steered(*words)
    assert (2, "", 1) == (done.status, done.out, done.err.count("\n"))
    assert message in done.err


def test_other_programs_have_no_lists(tailrace: Command) -> None:
    """There is nothing to check in a network of Flowcut."""
    done = tailrace("paths", "h1", "h3", "--check")
    assert (2, "", 1) == (done.status, done.out, done.err.count("\n"))
    assert "--check needs a network whose switches run the program spritz" in done.err


def test_planned_lists_are_those_of_the_network(steered: Steered, command: Command) -> None:
    """Without a network the same words give the same list."""
    live = steered(*PAIR, "-o", "json")
    planned = command("paths", *PAIR, "--scheme", SCHEME, "--topology", WORDS, "-o", "json")
    assert (0, "") == (planned.status, planned.err)
    assert live.rows == planned.rows


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--scheme goes with --topology"),
        (("--topology", WORDS, "--check"), "--scheme lists paths without a network"),
        (("--topology", WORDS, "--watch", "1"), "--watch goes with a running network"),
        (("--topology", "dragonfly:p=1,a=258,h=1,groups=1"), "r1_1 has 257 ports to choose from"),
    ],
)
def test_planned_lists_refuse(command: Command, words: tuple[str, ...], message: str) -> None:
    """One line for what does not go together."""
    done = command("paths", *PAIR, "--scheme", SCHEME, *words)
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1
