# SPDX-License-Identifier: Apache-2.0
"""The cases of files: a good one of each format, what it can get wrong, and the commands that read it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.bad_input import broken
from tests.bad_input.broken import Broken
from tests.bad_input.case import ROOT, Case

VIRTUAL = ("--target", "virtual")
HUGE = "9" * broken.DIGITS


def cases(
    group: str, words: tuple[str, ...], broken_files: Iterable[Broken], status: int = 2
) -> Iterator[Case]:
    """A case of each broken file: the word with FILE names the file, and the error's line must, too."""
    name = next(part for word in words for part in word.split("=") if part.startswith("FILE"))
    for what, content, says in broken_files:
        yield Case(f"{group}: {what}", words, (name, *says), {name: content}, status=status)


# ---- TOML: experiments, distributions ----

EXPERIMENT = {
    "scheme": '"flowcut:variant=nic"',
    "topology": '"leaf-spine:leaves=2,spines=2,hosts=1"',
    "workload": '"permutation:size=1KiB"',
    "fault": '["drop:rate=0.01"]',
    "seed": "3",
    "target": '"virtual"',
    "time_scale": "1",
    "transport": '"gbn"',
    "window": '"64KiB"',
    "mtu": '"1KiB"',
    "reorder": "3",
    "pfc": '"default"',
    "controller": '"ideal"',
    "sample": '"10us"',
    "follow": "[1]",
    "gaps": "true",
}
_TOML_WRONG = ("nan", "-1", "[[]]", "{a = 1}", "1979-05-27", '"\\u001b[2J"')


def toml(values: dict[str, str]) -> str:
    """A TOML file of keys and literals."""
    return "".join(f"{key} = {value}\n" for key, value in values.items())


def experiments() -> Iterator[Broken]:
    """Of an experiment."""
    for key, value in itertools.product(EXPERIMENT, _TOML_WRONG):
        yield Broken(f"{key} = {value}", toml(EXPERIMENT | {key: value}), (key,))
    yield Broken("a million digits", toml(EXPERIMENT | {"seed": HUGE}))
    yield Broken("beyond 64 bits", toml(EXPERIMENT | {"seed": str(1 << 200)}), ("seed",))
    good = toml(EXPERIMENT)
    for what, more, says in (
        ("an unknown key", "colour = 1\n", "colour"),
        ("a key twice", "seed = 4\n", "line"),
        ("an unknown scale", "[scale.tiny]\nseed = 1\n", "scale.tiny"),
        ("a scale of nothing", "[scale]\npaper = 3\n", "scale.paper"),
        ("an unknown key of a scale", "[scale.small]\ncolour = 1\n", "scale.small.colour"),
        ("a scale that is a number", "scale = 3\n", "scale"),
        ("two variants", 'variant = "full"\n', "variant"),
        ("seeds of a scale", '[scale.paper]\nseed = "9..1"\n', "scale.paper.seed"),
        ("seeds elsewhere", '[elsewhere]\nseed = "x"\n', "elsewhere.seed"),
        ("a label that leads elsewhere", '[schemes]\n"../x" = "ecmp"\n', "schemes.../x"),
        ("a label of nothing", '[schemes]\n"" = "ecmp"\n', "schemes."),
        ("a scheme that is none", '[schemes]\na = "magic"\n', "schemes.a"),
        ("a scheme that is a list", "[schemes]\na = []\n", "schemes.a"),
        ("tables below tables", "[a" + ".a" * 5000 + "]\n", ""),
        ("deep lists", "x = " + "[" * broken.DEEP, ""),
        ("no value", "x =\n", "line"),
    ):
        yield Broken(what, good + more, (says,))
    yield Broken("no scheme", good.partition("\n")[2], ("scheme",))
    yield Broken("JSON", '{"scheme": "ecmp"}', ("line",))
    yield Broken("one line of 1 MiB", "x" * (1 << 20))
    endless = f'"leaf-spine:leaves={"9" * (1 << 20)}"'
    yield Broken("words of 1 MiB", toml(EXPERIMENT | {"topology": endless}), ("topology",))
    for place in (3, 17, 60):
        yield Broken(f"cut at {place}", good[:place])


def scales() -> Iterator[Broken]:
    """Of an experiment of which the scale `small` is asked for."""
    yield Broken("not there", 'scheme = "ecmp"\n', ("scale.small",))
    label = '[schemes]\na = "ecmp"\n[scale.small.schemes]\nb = "ecmp"\n'
    yield Broken("a label that only the scale has", label, ("scale.small.schemes.b",))


CDF = {
    "name": '"mine"',
    "unit": '"bytes"',
    "measured": '"here"',
    "source": '"me"',
    "points": "[[100, 0.0], [2000, 0.5], [9000, 1.0]]",
}


def distributions() -> Iterator[Broken]:
    """Of a distribution of flow sizes."""
    for key in CDF:
        yield Broken(f"no {key}", toml({name: value for name, value in CDF.items() if name != key}), (key,))
        yield Broken(f"{key} = 1", toml(CDF | {key: "1"}), (key,))
    for what, points in {
        "none": "[]",
        "three numbers": "[[1, 0.0, 1.0]]",
        "backwards": "[[2000, 0.0], [100, 1.0]]",
        "falling": "[[1, 0.5], [2, 0.4], [3, 1.0]]",
        "short of 1": "[[1, 0.0], [2, 0.9]]",
        "beyond 1": "[[1, 0.0], [2, 1.5]]",
        "not a number": "[[1, nan], [2, 1.0]]",
        "infinite": "[[1, 0.0], [2, inf]]",
        "negative": "[[-1, 0.0], [2, 1.0]]",
        "a size of 2^70": f"[[1, 0.0], [{1 << 70}, 1.0]]",
        "a fraction of a byte": "[[1.5, 0.0], [2, 1.0]]",
        "texts": '[["1", "0"], ["2", "1"]]',
    }.items():
        yield Broken(f"points: {what}", toml(CDF | {"points": points}), ("points",))
    yield Broken("packets", toml(CDF | {"unit": '"packets"'}), ("unit",))
    yield Broken("an unknown key", toml(CDF | {"x": "1"}), ("x",))


# ---- CSV ----

_HEAD = "src,dst,bytes,start,sport,after\n"


def flows() -> Iterator[Broken]:
    """Of a file of flows."""
    good = "h1,h2,1KiB,0,1000,\n"
    for what, head in {
        "no header": good,
        "a column twice": "src,dst,bytes,start,src\n",
        "an unknown column": "src,dst,bytes,start,colour\n",
        "a column missing": "src,dst,bytes\n",
        "semicolons": "src;dst;bytes;start\n",
    }.items():
        yield Broken(what, head + good, ("line 1",))
    for what, row in {
        "a cell too many": "h1,h2,1,0,1,,7",
        "a cell too few": "h1,h2",
        "an unknown host": "h1,h77,1,0,,",
        "to itself by address": "h1,10.0.1.2,1,0,,",
        "no bytes": "h1,h2,0,0,,",
        "bytes of a million digits": f"h1,h2,{HUGE},0,,",
        "bytes with a unit of time": "h1,h2,1ms,0,,",
        "half a byte": "h1,h2,0.5,0,,",
        "a negative start": "h1,h2,1,-1ns,,",
        "a start beyond 64 bits": f"h1,h2,1,{1 << 64},,",
        "port 0": "h1,h2,1,0,0,",
        "port 65536": "h1,h2,1,0,65536,",
        "a port of other digits": "h1,h2,1,0,²,",
        "after a text": "h1,h2,1,0,,first",
        "a host of escapes": "\x1b[31mh1,h2,1,0,,",
        "a NUL": "h\0,h2,1,0,,",
    }.items():
        yield Broken(what, f"{_HEAD}{row}\n", ("line 2",))
    for what, rows in {
        "an open quote": '"h1,h2,1,0,,\n',
        "after itself": "h1,h2,1,0,,1\n",
        "after one that is not there": "h1,h2,1,0,,9\n",
        "after each other": "h1,h2,1,0,,2\nh2,h1,1,0,,1\n",
        "after somebody else's": "h3,h4,1,0,,\nh1,h2,1,0,,1\n",
        "only a header": "",
        "a field of 1 MiB": "h1," + "x" * (1 << 20) + ",1,0,,\n",
    }.items():
        yield Broken(what, _HEAD + rows)


# ---- JSON ----

TOPOLOGY: dict[str, Any] = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"},
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
    },
    "switches": {"s1": {}, "s2": {}},
    "links": [["h1", "s1-p1"], ["h2", "s2-p1"], ["s1-p2", "s2-p2", "1ms", 10]],
}


def topologies() -> Iterator[Broken]:
    """Of p4lang's topology.json."""
    for key, kind in (("hosts", "table"), ("switches", "table"), ("links", "list")):
        for what, value in broken.WRONG[kind]:
            yield Broken(f"{key} is {what}", json.dumps(TOPOLOGY | {key: value}), (key,))
        yield Broken(f"no {key}", json.dumps(broken.without(TOPOLOGY, (key,))), (key,))
    for link in (
        *(1, [], ["h1"], ["s1-p3", "s2-p3", 1, 1, 1], [1, 2]),  # no two ends and two numbers
        *(["s1-p3", "s9-p3"], ["s1", "s2-p3"], ["s1-p0", "s2-p3"], ["s1-p9999999", "s2-p3"]),  # no such port
        *(["s1-p2", "s2-p3"], ["h1", "s2-p3"], ["h1", "h2"], ["s1-p3", "s1-p4"]),  # in use; two of a kind
        *(["s1-p3", "s2-p3", delay] for delay in (-1, "soon", broken.Literal("NaN"))),
        *(["s1-p3", "s2-p3", 0, rate] for rate in (0, "fast", broken.Literal("1e999"))),
        ["\x1b[31m-p3", "s2-p3"],
    ):
        document = TOPOLOGY | {"links": [*TOPOLOGY["links"], link]}
        yield Broken(f"a link: {link!a}", broken.json_bytes(document))
    for host in (
        *(1, {}, {"ip": 1}, {"ip": "10.0.0.256/24"}, {"ip": "../../etc"}, {"ip": "::1"}),
        *({"ip": "10.0.1.1/24", "mac": "no"}, {"ip": "10.0.1.1/24", "mac": []}),
        {"ip": "10.0.2.2/24"},  # another's
    ):
        yield Broken(f"a host: {host}", json.dumps(broken.set_at(TOPOLOGY, ("hosts", "h1"), host)))
    for name in ("../x", "a/b", "", "-", "a" * 65, "a b", "x\x1b[2J", "ü", "a\0"):
        switches = json.dumps(broken.set_at(TOPOLOGY, ("switches", name), {}))
        yield Broken(f"a switch called {name[:9]!a}", switches, ("switches",))
    lonely = broken.set_at(TOPOLOGY, ("hosts", "h3"), {"ip": "10.0.3.3/24"})
    yield Broken("a host without a link", json.dumps(lonely), ("h3",))
    many = dict.fromkeys(map(str, range(70_000)))
    yield Broken("too many switches", json.dumps(TOPOLOGY | {"switches": many}))
    yield Broken("a network in two parts", json.dumps(TOPOLOGY | {"links": TOPOLOGY["links"][:2]}))


RUN_FILE: dict[str, Any] = {
    "topology": "leaf-spine:leaves=2,spines=2,hosts=1",
    "scheme": "ecmp",
    "target": "native",
    "tick_ns": 1000,
    "relay": None,
    "switches": {"leaf1": {"address": "127.0.0.1:1", "device_id": 1, "program": "ecmp"}},
}
_RUN_KEYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "topology": (("topology",), "text"),
    "target": (("target",), "text"),
    "tick_ns": (("tick_ns",), "number"),
    "switches": (("switches",), "table"),
    "switches.leaf1.address": (("switches", "leaf1", "address"), "text"),
    "switches.leaf1.device_id": (("switches", "leaf1", "device_id"), "number"),
    "switches.leaf1.program": (("switches", "leaf1", "program"), "text"),
}


def run_files() -> Iterator[Broken]:
    """Of the run file of a running network."""
    yield from broken.of_json(RUN_FILE, _RUN_KEYS)
    yield Broken("no switches", json.dumps(RUN_FILE | {"switches": {}}), ("switches",))
    leaf = RUN_FILE["switches"]["leaf1"]
    changes: dict[str, dict[str, Any]] = {
        "an unknown topology": {"topology": "moebius"},
        "a topology of a million hosts": {"topology": "leaf-spine:leaves=1000,spines=2,hosts=1000"},
        "a scheme that is a list": {"scheme": []},
        "a scheme without end": {"scheme": "x" * (1 << 17)},
        "time that stands still": {"time_scale": 0},
        "time beyond all": {"time_scale": 1e300},
        "links of nothing": {"down": [["leaf1"]]},
        "a switch called ../x": {"switches": {"../x": leaf}},
        "plug-ins that are numbers": {"plugins": [1]},
        "pfc of a text": {"pfc": "on"},
        "a relay that is a number": {"relay": 5},
    }
    for what, change in changes.items():
        yield Broken(what, json.dumps(RUN_FILE | change))


_ADDRESS = ("--address", "s1=127.0.0.1:1")
OTHER_COMMANDS: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "FILE.toml"),
    "sweep": ("sweep", "FILE.toml", "--set", "seed=1,2"),
    "a network to run in": ("run", "--scheme", "ecmp", "--topology", "FILE.json", *VIRTUAL),
    "a network of schemes": ("schemes", "--topology", "FILE.json"),
    "a network of paths": ("paths", "--scheme", "spritz", "--topology", "FILE.json"),
    "a network of switches": ("tables", *_ADDRESS, "--topology", "FILE.json"),
    "certificate": ("tables", *_ADDRESS, "--ca", "FILE"),
    **{
        name: (name, "--run", "FILE")
        for name in ("groups", "flows", "queues", "counters", "registers", "diff", "paths")
    },
    "shell": ("shell", "leaf1", "--run", "FILE"),
}
"""Commands that read a file by the functions of others: one kind of broken file is enough."""


def all_cases() -> Iterator[Case]:
    """Every case with a file that people write."""
    pipe = broken.A_PIPE
    run, ecmp = ("tailrace", "run"), ("tailrace", "run", "--scheme", "ecmp", *VIRTUAL)
    yield from cases("experiment", (*run, "FILE.toml"), [*broken.places(), *experiments()])
    for name, words in OTHER_COMMANDS.items():
        yield from cases(name, ("tailrace", *words), [pipe])
    yield from cases("scale", (*run, "FILE.toml", "--scale", "small"), scales())
    schemes = Broken("a scheme that is none", '[schemes]\na = "magic"\n', ("schemes.a",))
    yield from cases("compare", ("tailrace", "compare", "FILE.toml"), [schemes])
    yield from cases(
        "cdf", (*ecmp, "--workload", "random:cdf=FILE.toml"), [*broken.places(), *distributions()]
    )
    yield from cases("flows", (*ecmp, "--workload", "FILE.csv"), [*broken.places(), *flows()])
    topology = ("tailrace", "topology", "FILE.json")
    yield from cases("topology", topology, [*broken.places(), *topologies(), *broken.of_json_text(TOPOLOGY)])
    yield from cases("run file", ("tailrace", "tables", "--run", "FILE"), [*broken.places(), *run_files()])
    build = ROOT / "p4src" / "build"
    program = json.loads((build / "ecmp.json").read_bytes())
    yield from cases("program", ("switch", "FILE"), [pipe, *programs(program)])
    p4info = ("tailrace", "tables", *_ADDRESS, "--p4info", "FILE")
    yield from cases(
        "p4info", p4info, [*broken.places(), *p4infos((build / "ecmp.p4info.txtpb").read_text())]
    )


def programs(program: Any) -> Iterator[Broken]:
    """Of BMv2 JSON."""
    yield from broken.of_json_text(program)
    for key in ("header_types", "headers", "parsers", "deparsers", "pipelines", "actions"):
        if key != "actions":  # else it is told where the first one is called
            yield Broken(f"no {key}", json.dumps(broken.without(program, (key,))), (key,))
        yield Broken(f"{key} is a number", json.dumps(program | {key: 5}), (key,))


def p4infos(text: str) -> Iterator[Broken]:
    """Of P4Info as text."""
    yield Broken("cut", text[: len(text) // 2])
    yield Broken("an unknown field", "colour: 1\n" + text)
    yield Broken("an id twice", text + text)
    yield Broken("a number beyond 32 bits", "tables { preamble { id: 99999999999999999999 } }")
    yield Broken("deep", "type_info { " * 5000)
    yield Broken("a JSON", "{}")
