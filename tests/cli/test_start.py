# SPDX-License-Identifier: Apache-2.0
"""What commands do not import: told by names, since times say more of the machine than of us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tailrace.cli.start import names
from tailrace.hosts import compiled
from tailrace.spec.plugins import VARIABLE
from tailrace.spec.registry import Registry
from tests.long import more

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 240

HEAVY = ("arro3", "finsy", "google", "grpc", "jinja2", "matplotlib", "numpy", "polars", "pydantic", "scapy")
DRAWS = ("numpy", "matplotlib", "polars", "jinja2", "networkx")
_TELL = (
    "import json, sys; sys.argv[0] = 'tailrace'; from tailrace.cli.main import main; status = main();"
    "sys.stderr.write(json.dumps(sorted({name.partition('.')[0] for name in sys.modules}))); sys.exit(status)"
)


def imported(
    *words: str, cwd: Path = ROOT, environment: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, set[str]]:
    """Standard output of a command, and the packages that are loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", _TELL, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


def completed(line: str, **environment: str) -> tuple[list[str], set[str]]:
    """What bash is offered, and what was loaded for it."""
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    out, packages = imported(environment={"_TAILRACE_COMPLETE": "complete_bash", **asked, **environment})
    return out.split(), packages


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("tables", "--help"), ("--version",)])
def test_help_loads_what_draws_panels_and_nothing_else(words: tuple[str, ...]) -> None:
    """Neither what typer's panels would import for other kinds of texts."""
    out, packages = imported(*words)
    assert out
    assert not packages & {*HEAVY, "markdown_it", "pygments"}
    if "--help" in words:
        assert "╭─ Options" in out


@pytest.mark.parametrize("line", ["tailrace r", "tailrace tables --", "tailrace run --target virtual --s"])
def test_completion_loads_nothing_heavy(line: str) -> None:
    """Nor rich: nobody sees a panel."""
    offered, packages = completed(line)
    assert offered
    assert not packages & {*HEAVY, "rich"}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tailrace run --scheme flowcut:buck", ["flowcut:buckets="]),
        ("tailrace workloads inc", ["incast"]),
        *more(
            ("tailrace run --topology fat", ["fat-tree"]),
            ("tailrace faults dr", ["drop"]),
            ("tailrace run --transport dc", ["dctcp", "dcqcn"]),
        ),
    ],
)
def test_names_are_remembered(line: str, offered: list[str], tmp_path: Path) -> None:
    """Asked of what registers them the first time, and read the second."""
    cache = {"TAILRACE_CACHE": str(tmp_path)}
    first, _ = completed(line, **cache)
    second, packages = completed(line, **cache)
    assert sorted(first) == sorted(second) == sorted(offered)
    assert not packages & {*HEAVY, "rich"}


def test_names_that_were_damaged_are_asked_anew(tmp_path: Path) -> None:
    """The seal of the cache says so."""
    cache = {"TAILRACE_CACHE": str(tmp_path)}
    completed("tailrace run --fault dr", **cache)
    (entry,) = tmp_path.glob("names-*")
    entry.write_bytes(entry.read_bytes().replace(b"drop", b"trap"))
    assert completed("tailrace run --fault dr", **cache)[0] == ["drop"]
    assert b"drop" in entry.read_bytes()


def test_plug_ins_are_never_remembered(tmp_path: Path) -> None:
    """What TAILRACE_PLUGINS names may change at any time."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from dataclasses import dataclass\n"
        "from tailrace.topology.parse import FAMILIES\n"
        "@FAMILIES.register('zigzag', 'one of mine')\n"
        "@dataclass(frozen=True)\n"
        "class Mine:\n    def build(self, options):\n        raise NotImplementedError\n"
    )
    cache = {"TAILRACE_CACHE": str(tmp_path / "cache")}
    for plugins, offered in (("", []), (str(plugin), ["zigzag"]), ("", [])):
        assert completed("tailrace run --topology zig", TAILRACE_PLUGINS=plugins, **cache)[0] == offered


@pytest.mark.parametrize("kind", ["scheme", "topology", "workload", "fault", "transport"])
def test_names_are_those_that_are_registered(kind: str) -> None:
    """In this process, where they are loaded."""
    registry: Registry[object] = names.registry_of(kind)
    assert names.names_of(kind) == {
        name: [key.name for key in registry.keys(name)] for name in registry.names
    }


def test_the_variable_of_plugins_is_theirs() -> None:
    assert names._PLUGINS == VARIABLE


def test_a_run_with_another_cache_says_that_nics_are_interpreted(tmp_path: Path) -> None:
    """In one line on standard error, and in its summary; with what is compiled for C it begins anew."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tailrace.cli.main", "run", "--target", "virtual", "--scheme", "ecmp"),
            *("--workload", "permutation:size=1KiB", "--out", str(tmp_path / "out")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
        env={**os.environ, "TAILRACE_CACHE": str(tmp_path / "cache"), "TAILRACE_HOSTS": "auto"},
    )
    (warning,) = [line for line in done.stderr.splitlines() if "NICs run interpreted" in line]
    assert compiled.BUILD_COMMAND in warning
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["nics"] == "interpreted"


def test_a_virtual_run_without_a_figure_draws_nothing(tmp_path: Path) -> None:
    """Nor does it check its words by pydantic, or parse C headers anew."""
    words = ("run", "--target", "virtual", "--scheme", "ecmp", "--topology", "fat-tree:k=4")
    _, packages = imported(*words, "--workload", "permutation:size=8KB", "--out", "here", cwd=tmp_path)
    assert (tmp_path / "here" / "summary.json").exists()
    assert not packages & {*DRAWS, "pydantic", "pycparser", "mypy"}
