# SPDX-License-Identifier: Apache-2.0
"""The cases of command lines and of variables of the environment."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bad_input.case import SMALLEST, Case

MANY = "9" * 10**6
_RUN = ("tailrace", "run", "--scheme", "ecmp", *SMALLEST)

OPTIONS: dict[str, tuple[str, ...]] = {
    "--scheme": ("", ":", "magic", "ecmp:over=", "ecmp:over=all,over=all", "ecmp:colour=1", "flowcut:rtt=nan",
                 "flowcut:buckets=1e9", "letflow:gap=0x10us", "rlb:variant=rlb", "letflow:hf2t=101", "\udc80",
                 "x" * 70_000),
    "--topology": ("", "moebius", "leaf-spine:leaves=0", "leaf-spine:leaves=1.5", "leaf-spine:leaves=1000000",
                   f"leaf-spine:leaves={MANY[:60_000]}", "leaf-spine:rate=10parsec", "leaf-spine:delay=-1us",
                   "leaf-spine:leaves=2,,spines=2", "leaf-spine:\x1b[2J=1", "leaf-spine:leaves=²", "fat-tree:k=3",
                   "slim-fly:q=6", "../FILE.json", "/dev/null.json"),
    "--workload": ("", "magic", "permutation:size=0", "permutation:size=1EiB", "incast:degree=10000",
                   "random:cdf=none", "random:cdf=websearch,load=inf",
                   "random:cdf=websearch,load=0.5,duration=1000000s", "FILE.csv", "alltoall:size=1KiB,size=2KiB"),
    "--fault": ("", "magic", "drop:rate=1.5", "drop:rate=nan", "link-slow:fraction=0.1,factor=0",
                "link-down:link=h1-leaf1", "link-down:at=5us,until=1us", "blackhole:pairs=x", "ack-loss"),
    "--seed": ("", "x", "1..", "5..1", "1..1000000000", "1.5", "1,,2", MANY[:70_000]),
    "--target": ("", "AUTO", "native,virtual"),
    "--time-scale": ("0", "-1", "nan", "1e300", "x"),
    "--transport": ("", "quic", "gbn:x=1", "dcqcn:clamp=maybe", "gbn:ack_every=0", "tcp:mss=1"),
    "--window": ("", "0", "1EB", "0BDP", "nanBDP", "1e9BDP"),
    "--mtu": ("", "0", "1GiB", "-1", "1.5B"),
    "--reorder": ("-1", "1.5", MANY[:10_000]),
    "--pfc": ("", "xoff=0", "xoff=1KiB,xon=2KiB", "alpha=1/0", "alpha=nan", "channels=99", "xoff=1TiB", "colour=1"),
    "--controller": ("", "dead", "real:"),
    "--sample": ("", "0", "-1us", "nan"),
    "--follow": ("x", "-1"),
    "--flows": ("0", "1e3", MANY[:10_000]),
    "--ranks": ("", "0", "1.5", "²", MANY[:10_000], "100000"),
    "--stop-at": ("", "x", "-1us", "0.1ns", "queue>", "queue>h1", "drain or (queue", "drain=1"),
    "--scale": ("tiny", ""),
    "-o": ("xml",),
}  # fmt: skip
"""For each option of `tailrace run` what it does not take."""

OTHER_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "no such command": (("tailrace", "fly"), ("fly",)),
    "no such option": (("tailrace", "--fly"), ("--fly",)),
    "an option without its value": (("tailrace", "run", "--seed"), ("--seed",)),
    "an argument too many": (("tailrace", "topology", "leaf-spine", "fat-tree"), ("fat-tree",)),
    "run without anything": (("tailrace", "run"), ("scheme",)),
    "an unknown preset": (("tailrace", "run", "nothing"), ("nothing",)),
    "a scale without a file": ((*_RUN, "--scale", "small"), ("--scale",)),
    "two that contradict": ((*_RUN, "--stop-at", "1us", "--cli"), ("--stop-at",)),
    "ranks and a prompt": ((*_RUN, "--ranks", "2", "--cli"), ("--ranks",)),
    "a prompt in virtual time": ((*_RUN, "--cli"), ("--cli",)),
    "two forms": ((*_RUN, "--json", "-o", "csv"), ("--json",)),
    "no workers": (("tailrace", "compare", "basic", "--workers", "0"), ("--workers",)),
    "workers in real time": (("tailrace", "sweep", "--set", "scheme=ecmp", *SMALLEST[:4], "--target", "native", "--workers", "2"), ()),
    "a sweep of nothing": (("tailrace", "sweep"), ("--set",)),
    "a sweep without values": (("tailrace", "sweep", "--set", "seed="), ("--set",)),
    "a sweep without =": (("tailrace", "sweep", "--set", "seed"), ("--set",)),
    "a sweep of one key twice": (("tailrace", "sweep", "--set", "seed=1", "--set", "seed=2", "--scheme", "ecmp"), ("seed",)),
    "a sweep over too many": (("tailrace", "sweep", "--set", "seed=1..999999999", "--scheme", "ecmp"), ("--set",)),
    "a sweep of a million": (("tailrace", "sweep", "--set", "seed=1..1000", "--set", "reorder=1..1000", "--scheme", "ecmp"), ("sweep",)),
    "a sweep of no option": (("tailrace", "sweep", "--set", "scheme.=1", "--scheme", "ecmp"), ("scheme.",)),
    "a cluster that is none": (("tailrace", "sweep", "--set", "scheme=ecmp", *SMALLEST, "--cluster", "nonsense"), ("cluster nonsense",)),
    "a sweep without a scheme": (("tailrace", "sweep", "--set", "seed=1"), ("scheme",)),
    "a comparison with no such scheme": (("tailrace", "compare", "--scheme", "ecmp,magic"), ("magic",)),
    "a comparison of a scheme with itself": (("tailrace", "compare", "--scheme", "ecmp,ecmp"), ("ecmp",)),
    "flows of who has as many as hosts": (("tailrace", "compare", "--workload", "alltoall", "--flows", "3"), ("flows",)),
    "a comparison over too many seeds": (("tailrace", "compare", "--seed", "1..1000000000"), ("seed",)),
    "a scale of no figure": (("tailrace", "paper", "fig8", "--scale", "huge"), ("--scale",)),
    "no such paper": (("tailrace", "paper", "nothing"), ("nothing",)),
    "seeds of a paper": (("tailrace", "paper", "flowcut_table3", "--seed", "x"), ("--seed",)),
    "a page of two papers": (("tailrace", "paper", "flowcut_table3,spritz_fig3", "--page", "x.md"), ("--page",)),
    "a paper as CSV": (("tailrace", "paper", "flowcut_table3", "-o", "csv"), ("-o",)),
    "no figure": (("tailrace", "results", "nothing"), ("'nothing' is not known",)),
    "a filter of no seed": (("tailrace", "results", "seed=x"), ("seed",)),
    "a page that is a device": (("tailrace", "report", "/proc/self"), ()),
    "results below a file": ((*_RUN, "--out", "/dev/null/x"), ("/dev/null/x",)),
    "results of a long name": ((*_RUN, "--out", "x" * 300), ("xxx",)),
    "results of no name": ((*_RUN, "--out", "\0"), ("folder",)),
    "no plug-in": ((*_RUN, "--plugin", "nothing"), ("plug-in",)),
    "two plug-ins in one": ((*_RUN, "--plugin", "a:b"), ("plug-in",)),
    "a flow of nobody": ((*_RUN, "--follow", "99999999999999999999"), ("follow",)),
    "a report of nothing": (("tailrace", "report", "nowhere"), ("nowhere",)),
    "no such scheme": (("tailrace", "schemes", "magic"), ("magic",)),
    "a part of no topology": (("tailrace", "topology", "leaf-spine", "--show", "nothing"), ("--show",)),
    "no network": (("tailrace", "tables"), ("no network of yours is running",)),
    "two places": (("tailrace", "tables", "--run", "x", "--address", "1:1"), ("--run",)),
    "an address twice": (("tailrace", "tables", "--address", "s1=a:1", "--address", "s1=b:1"), ("s1",)),
    "an address of nobody": (("tailrace", "tables", "--address", "s9=a:1", "--topology", "leaf-spine"), ("--address",)),
    "a device beyond 64 bits": (("tailrace", "tables", "--address", "s1=a:1@99999999999999999999"), ("device id",)),
    "no text for an address": (("tailrace", "tables", "--address", "s1=\udc80"), ()),
    "a key without a certificate": (("tailrace", "tables", "--address", "s1=127.0.0.1:1", "--key", "x"), ()),
    "watching never": (("tailrace", "tables", "--address", "s1=127.0.0.1:1", "--watch", "0"), ("--watch",)),
    "watching for nan": (("tailrace", "tables", "--address", "s1=127.0.0.1:1", "--watch", "nan"), ("--watch",)),
    "no rounds": (("tailrace", "tables", "--address", "s1=127.0.0.1:1", "--rounds", "0"), ("--rounds",)),
    "paths of no scheme": (("tailrace", "paths", "--scheme", "magic", "--topology", "leaf-spine"), ("magic",)),
    "paths without a topology": (("tailrace", "paths", "--scheme", "spritz"), ("--topology",)),
    "differences to nothing": (("tailrace", "diff", "--address", "127.0.0.1:1"), ("run file",)),
    "a shell of nobody": (("tailrace", "shell", "leaf1"), ()),
}  # fmt: skip
"""Other command lines, and what their line must hold."""

WHERE = (
    "==",
    "port == 1 and",
    "(port == 1",
    "port == 'x",
    "(" * 5000 + "port == 1" + ")" * 5000,
    "not " * 5000 + "port",
)

SWITCH: dict[str, tuple[str, ...]] = {
    "-i": ("", "x", "1@", "@eth0", "-1@lo", "600@lo", "1@" + "e" * 100, "1@nothing-there", "1@../lo"),
    "--device-id": ("x", "-1", "99999999999999999999"),
    "--cpu-port": ("0", "512"),
    "--drop-port": ("x", "99999"),
    "--priority-queues": ("0", "9"),
    "--max-mc-groups": ("0", "99999999999"),
    "--tick-ns": ("0", "x", "99999999999999999999"),
    "--port-rate": ("", "1:", "x:1Mbps", "1parsec", "-1Mbps", "nanbps"),
    "--port-delay": ("x", "-1us", "1Mbps"),
    "--queue-depth": ("", "-1", "0x10pkts", "99999999999999999999"),
    "--recirc-rate": ("x", "10pps"),
    "--pfc": ("", "x", "9:xoff=1", "0:xoff=1,xon=2,headroom=1"),
    "--pfc-watchdog": ("x", "detect=0", "off"),
    "--buffer": ("", "0", "1MB,alpha=nan", "1MB,colour=1"),
    "--memory": ("0", "x"),
    "--statistics": ("/nowhere/x",),
    "--pcap": ("/nowhere",),
    "-L": ("loud",),
    "--log-file": ("/nowhere/log", "/dev/null/x"),
    "--log-file-max-size": ("0",),
    "--grpc-server-addr": ("", "nowhere:99999", "127.0.0.1:-1", "256.0.0.1:1"),
    "--use-files": ("1",),
    "--packet-in": ("x",),
    "--restore-state": ("x",),
    "--nonsense": ("1",),
}
"""For each option of the switch what it does not take."""

MAKE_RUN: dict[str, tuple[str, ...]] = {
    "TARGET": ("moon", "native;rm"),
    "SCHEME": ("magic", ",", "ecmp,,letflow", "ecmp:x=1", "\udc80"),
    "VARIANT": ("magic", "hf2t,nic"),
    "TOPO": ("moebius", "leaf-spine:leaves=0"),
    "WORKLOAD": ("magic", "permutation:size=0"),
    "FLOWS": ("x", "0", "-1"),
    "SEED": ("x", "5..1"),
    "FAULT": ("magic", "drop:rate=2"),
    "OUT": ("/dev/null", "/dev/null/x"),
}
"""For each variable of `make run` what it does not take."""

ENVIRONMENT: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "TAILRACE_LIMIT_FACTOR": (
        ("0", "x", "1e9", "9" * 5000, "²"),
        ("tailrace", "topology", "leaf-spine:leaves=1000,spines=2,hosts=100"),
        ("TAILRACE_LIMIT_FACTOR",),
    ),
    "TAILRACE_PLUGINS": (("nothing", "/dev/zero", "/dev/null:x.py"), ("tailrace", "schemes"), ("plug-in",)),
}
"""For each variable of ours what it does not take, a command that reads it, and what the line must hold."""

SCRIPTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "soak: no range": (("soak", "--seeds", "5..1"), ("--seeds",)),
    "soak: no seed": (("soak", "--seed", "x"), ("--seed",)),
    "soak: no scenario": (("soak", "--scenario", "{}"), ("--scenario",)),
    "soak: a deep one": (("soak", "--scenario", "[" * 100_000), ("--scenario",)),
    "soak: no workers": (("soak", "--seeds", "1..2", "--workers", "0"), ("--workers",)),
    "bench: no such": (("bench", "--only", "x"), ("--only",)),
    "bench: half a program": (("bench", "--program", "x.json"), ("--program",)),
    "bench: out": (("bench", "--only", "pipeline", "--out", "/dev/null/x"), ("/dev/null",)),
    "conformance: nothing": (("conformance",), ("--out",)),
    "conformance: no packets": (("conformance", "--out", "x", "--packets", "0"), ("--packets",)),
    "compile_p4: no folder": (("compile_p4", "--check", "nowhere", "build"), ("nowhere",)),
    "run_ptf: no target": (("run_ptf",), ("--target",)),
    "run_ptf: no parts": (("run_ptf", "--target", "native", "--parts", "0"), ("--parts",)),
    "hosts: nothing": (("hosts",), ("JOB.json",)),
    "hosts build: nothing known": (("hosts build", "--x"), ("--x",)),
}  # fmt: skip
"""Scripts of ours."""


def all_cases() -> Iterator[Case]:
    """Every case without a file."""
    for option, values in OPTIONS.items():
        for value in values:
            said = option if option == "-o" else option.removeprefix("--").partition("-")[0]
            yield Case(f"run {option} {value[:30]!a}", (*_RUN, option, value), (said,))
    for name, (words, says) in OTHER_COMMANDS.items():
        yield Case(name, words, says)
    for text in WHERE:
        words = ("tailrace", "tables", "--address", "s1=127.0.0.1:1", "--where", text)
        yield Case(f"--where {text[:30]!a}", words, ("--where",))
    for option, values in SWITCH.items():
        for value in values:
            yield Case(f"switch {option} {value[:30]!a}", ("switch", "--no-p4", option, value))
    for name, values in MAKE_RUN.items():
        for value in values:
            yield Case(
                f"make run {name}={value!a}",
                ("make run",),
                (),
                environment={"TARGET": "virtual", name: value},
            )
    for name, (values, words, says) in ENVIRONMENT.items():
        for value in values:
            yield Case(f"{name}={value[:30]!a}", words, says, environment={name: value})
    for name, (words, says) in SCRIPTS.items():
        yield Case(name, words, says)
