# SPDX-License-Identifier: Apache-2.0
"""What the command line completes: commands, options of each command, and values, as shells ask for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cli import complete
from tailrace.experiments.plan.experiment_file import PRESETS
from tailrace.papers.model import names as figures
from tailrace.spec.plugins import VARIABLE
from tailrace.spec.registry import Registry
from tests.cli.conftest import Command, Fabric

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 240
HEAVY = {
    "arro3",
    "finsy",
    "google",
    "grpc",
    "jinja2",
    "matplotlib",
    "numpy",
    "polars",
    "pydantic",
    "rich",
    "scapy",
}

HELP = {"-h", "--help"}
VIEW = {"-o", "--output", "--json", "--columns", "--sort-by"}
SOURCE = {"--run", "--address", "--device-id", "--p4info", "--topology", "--ca", "--cert", "--key"}
INSPECT = {"--where", "--watch", "--rounds", *VIEW, *SOURCE}
EXPERIMENT = {
    *("--topology", "--workload", "--flows", "--target", "--seed", "--fault", "--time-scale", "--transport"),
    *(
        "--window",
        "--mtu",
        "--reorder",
        "--pfc",
        "--controller",
        "--sample",
        "--follow",
        "--record",
        "--gaps",
        "--no-gaps",
    ),
    "--plugin",
}
OPTIONS = {
    "run": {
        "--scheme",
        "--variant",
        *("--program", "--p4info", "--entries"),
        "--scale",
        "--out",
        "--pcap",
        "--ranks",
        "--stop-at",
        "--cli",
        *EXPERIMENT,
        *VIEW,
    },
    "compare": {"--scheme", "--scale", "--out", "--pcap", "--workers", "--again", *EXPERIMENT, *VIEW},
    "sweep": {
        *("--set", "--scheme", "--scale", "--workers", "--cluster", "--again", "--out", "--store"),
        *(*EXPERIMENT, *VIEW),
    },
    "paper": {
        *("--scale", "--quick", "--seed", "--workers", "--cluster", "--again", "--out", "--page", "--store"),
        *("--beside", *VIEW),
    },
    "results": {"--over-seeds", "--store", "--where", *VIEW},
    "plot": {"--format", "--width", "--height", "--log", "--no-log", "--labels", "--out"},
    "view": {"--out", "--state", "--plugin"},
    "report": {"--out", "--title"},
    "tables": INSPECT,
    "groups": INSPECT,
    "paths": {"--check", "--sample", "--scheme", *INSPECT},
    "flows": INSPECT,
    "queues": INSPECT,
    "counters": {"--all", *INSPECT},
    "registers": {"--all", *INSPECT},
    "diff": INSPECT,
    "shell": {"--election-id", *SOURCE},
    "push": {"--entries", "--election-id", *SOURCE},
    **{key: {"--dry-run", "--election-id", *SOURCE} for key in ("write", "delete")},
    "ls": {"--show", "--run", *VIEW},
    "link": {"--run"},
    "capture": {"--count", "--out", "--run"},
    "events": {"--follow", "--run", *VIEW},
    "trace": {
        *("--port", "--flow", "--psn", "--all", "--full", "--json", "--proto", "--send", "--election-id"),
        *("--save", "--replay", "--target", "--export", *SOURCE),
    },
    "topology": {"--show", "--svg", "--plugin", *VIEW},
    "schemes": {*EXPERIMENT, *VIEW},
    **{key: {"--plugin", *VIEW} for key in ("topologies", "workloads", "faults", "transports")},
    "resources": {"--over", "--plugin", *VIEW},
    "convert": {"--format", "--topology", "--seed", "--plugin"},
    "dissector": set(),
    "lab": {"--start", "--seed", "--check"},
    "coverage": {"--unused", "--lcov", *VIEW},
}
"""The options of each command, but for those of help."""

VALUES = {
    "run --scheme flo": "flowbender flowcut",
    "run --scheme flowcut:buck": "flowcut:buckets=",
    "compare --scheme ecmp,letf": "ecmp,letflow",
    "compare --scheme ecmp,flowcut:rtt=3,buck": "ecmp,flowcut:rtt=3,buckets=",
    "sweep --set seed=1..2 --scheme sp": "spray spritz",
    "run --topology fat": "fat-tree",
    "run --topology leaf-spine:sp": "leaf-spine:spines=",
    "run --topology examples/t": "examples/two_choices/",
    "run --workload inc": "incast",
    "convert a b --topology fat": "fat-tree",
    "run --fault link-s": "link-slow",
    "schemes --fault d": "drop",
    "run --transport dc": "dcqcn dctcp",
    "run --target na": "native",
    "run --target=na": "--target=native",
    "run --controller i": "ideal",
    "run --scale s": "small",
    "paper --scale p": "paper",
    "run bas": "basic",
    "run --json bas": "basic",
    "sweep --set seed=1..2 bas": "basic",
    "run pyproj": "pyproject.toml",
    "paper flowcut_fig1": "flowcut_fig1 " + " ".join(f"flowcut_fig1{number}" for number in range(6)),
    "paper flowcut_fig8,flowcut_fig9": "flowcut_fig8,flowcut_fig9",
    "paper l": "list",
    "schemes ecm": "ecmp",
    "schemes ecmp fl": "flicr flowbender flowcut",
    "topologies fat": "fat-tree",
    "workloads inc": "incast",
    "faults dr": "drop",
    "transports s": "sr",
    "topology fat": "fat-tree",
    "topology leaf-spine:sp": "leaf-spine:spines=",
    "topology leaf-spine --show l": "links",
    "trace --target b": "bmv2",
    "tables -o js": "json jsonl",
    "compare --output w": "wide",
    "compare --sort-by fct_p": "fct_p50 fct_p99",
    "compare --sort-by=fct_p": "--sort-by=fct_p50 --sort-by=fct_p99",
    "paper list --columns name,ti": "name,title",
    "results --columns se": "setting seed",
    "topologies --columns mea": "meaning",
    "schemes --sort-by de": "default",
    "coverage --columns perc": "percent",
    "resources --columns again": "again",
    "tables --columns pri": "priority",
    "groups --sort-by mem": "members",
    "paths --columns gro": "group",
    "flows --columns switch,in_f": "switch,in_flight_bytes",
    "queues --sort-by egress": "egress_queue_bytes",
    "counters --columns by": "bytes",
    "registers --columns val": "value",
    "diff --columns inten": "intended",
}
"""Values that complete without a network, by the words after `tailrace`."""

_ASK = """
import json, os, sys
from pathlib import Path
from tailrace.cli.main import main

offered, file = {}, Path(os.environ["_ARGCOMPLETE_STDOUT_FILENAME"])
for words in sys.argv[1:]:
    os.environ["COMP_LINE"] = f"tailrace {words}"
    os.environ["COMP_POINT"] = str(len(os.environ["COMP_LINE"]))
    assert main([]) == 0
    offered[words] = file.read_text().split("\\n")
print(json.dumps([offered, sorted({name.partition('.')[0] for name in sys.modules})]))
"""
"""What the function of a shell does, for several lines."""


def completed(folder: Path, *lines: str, **environment: str) -> tuple[dict[str, list[str]], set[str]]:
    """What a shell is offered for each of some lines, sorted, and the packages that were loaded.

    Args:
        folder: of a temporary file.
        lines: words after `tailrace`.
        environment: variables beside those of the process.
    """
    protocol = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(folder / "offered"),
    }
    done = subprocess.run(
        [sys.executable, "-c", _ASK, *lines],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **protocol, **environment},
    )
    assert done.stderr == ""
    offered, packages = json.loads(done.stdout)
    return {line: sorted(filter(None, words)) for line, words in offered.items()}, set(packages)


def test_commands_and_options_complete(tmp_path: Path) -> None:
    lines = [f"{command} {dash}" for command in OPTIONS for dash in ("-", "--")]
    offered, _ = completed(tmp_path, "", "-", "--debug cou", *lines)
    assert offered[""] == sorted(OPTIONS)
    assert offered["-"] == sorted({"--version", "--debug", "--show-completion", *HELP})
    assert offered["--debug cou"] == ["counters"]
    for command, options in OPTIONS.items():
        assert offered[f"{command} -"] == sorted({*options, *HELP})
        assert offered[f"{command} --"] == sorted({*options, *HELP} - {"-o", "-h"})


def test_values_complete(tmp_path: Path) -> None:
    offered, _ = completed(tmp_path, *VALUES)
    assert offered == {line: sorted(values.split()) for line, values in VALUES.items()}


def test_all_of_a_kind_complete(tmp_path: Path) -> None:
    """Where nothing is typed yet: presets and files, papers and figures; files for paths, for nothing else."""
    presets = {path.stem for path in PRESETS.glob("*.toml")}
    offered, _ = completed(tmp_path, "run ", "paper ", "push s1 ", "run --window ")
    assert {*presets, "docs/", "pyproject.toml"} <= set(offered["run "])
    assert {"list", "all", "flowcut", *figures()} <= set(offered["paper "])
    assert {"docs/", "README.md"} <= set(offered["push s1 "])
    assert offered["run --window "] == []


def test_names_of_the_running_network_complete(fabric: Fabric, tmp_path: Path) -> None:
    folder = tmp_path / "tailrace"
    folder.mkdir(mode=0o700)
    (folder / "current.json").write_text(fabric.run_file.read_text())
    commands = (
        "tables",
        "groups",
        "flows",
        "queues",
        "counters",
        "registers",
        "diff",
        "shell",
        "push",
        "trace",
    )
    switches = [f"{command} le" for command in commands]
    hosts = ["paths h", "paths --check h1 h"]
    lines = (*switches, *hosts, "tables leaf1 sp")
    offered, _ = completed(tmp_path, *lines, XDG_RUNTIME_DIR=str(tmp_path))
    assert offered.pop("tables leaf1 sp") == ["spine1", "spine2"]
    assert offered == {key: ["leaf1", "leaf2"] for key in switches} | {
        key: ["h1", "h2", "h3", "h4"] for key in hosts
    }
    nothing, _ = completed(tmp_path, *hosts, "tables le", XDG_RUNTIME_DIR=str(tmp_path / "nothing"))
    assert nothing == {key: [] for key in [*hosts, "tables le"]}


def test_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    offered, packages = completed(tmp_path, "r", "tables --", "run --target virtual --s")
    assert all(offered.values())
    assert not packages & HEAVY


def test_names_are_remembered(tmp_path: Path) -> None:
    """Asked of what registers them the first time, and read the second."""
    cache = {"TAILRACE_CACHE": str(tmp_path)}
    lines = (
        "run --scheme flowcut:buck",
        "workloads inc",
        "run --topology fat",
        "faults dr",
        "run --transport dc",
    )
    first, _ = completed(tmp_path, *lines, **cache)
    second, packages = completed(tmp_path, *lines, **cache)
    assert first == second == {line: sorted(VALUES[line].split()) for line in lines}
    assert not packages & HEAVY


def test_names_that_were_damaged_are_asked_anew(tmp_path: Path) -> None:
    """The seal of the cache says so."""
    line, cache = "run --fault dr", {"TAILRACE_CACHE": str(tmp_path)}
    completed(tmp_path, line, **cache)
    (entry,) = tmp_path.glob("names-*")
    entry.write_bytes(entry.read_bytes().replace(b"drop", b"trap"))
    assert completed(tmp_path, line, **cache)[0] == {line: ["drop"]}
    assert b"drop" in entry.read_bytes()


def test_plug_ins_are_never_remembered(tmp_path: Path) -> None:
    """What TAILRACE_PLUGINS names may change at any time."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from dataclasses import dataclass\n"
        "from tailrace.topology.parse import FAMILIES\n"
        "@FAMILIES.register('zigzag', 'one of mine')\n"
        "@dataclass(frozen=True)\n"
        "class Mine:\n    def build(self, options):\n        raise AssertionError('completion builds no network')\n"
    )
    line, cache = "run --topology zig", {"TAILRACE_CACHE": str(tmp_path / "cache")}
    for plugins, expected in (("", []), (str(plugin), ["zigzag"]), ("", [])):
        assert completed(tmp_path, line, TAILRACE_PLUGINS=plugins, **cache)[0] == {line: expected}


@pytest.mark.parametrize("kind", ["scheme", "topology", "workload", "fault", "transport"])
def test_names_are_those_that_are_registered(kind: str) -> None:
    """In this process, where they are loaded."""
    registry: Registry[object] = complete.registry_of(kind)
    assert complete.names_of(kind) == {
        name: [key.name for key in registry.keys(name)] for name in registry.names
    }


def test_the_variable_of_plugins_is_theirs() -> None:
    assert complete._PLUGINS == VARIABLE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_their_code(shell: str, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    result = command("--show-completion")
    assert (result.status, result.err) == (0, "")
    assert ("(commandline -cp)" in result.out) == (shell == "fish")
    assert "tailrace" in result.out
