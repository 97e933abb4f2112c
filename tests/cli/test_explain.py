# SPDX-License-Identifier: Apache-2.0
"""`tailrace topology`, `tailrace schemes` and `tailrace shell`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cbuild.artifacts import P4_BUILD
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import SpecError
from tailrace.topology import parse_topology
from tests.cli.conftest import Command, Fabric
from tests.switch.p4runtime.conftest import TIMEOUT_S

ROOT = Path(__file__).resolve().parents[2]
WORDS = "leaf-spine:leaves=2,spines=2,hosts=1,rate=10Gbps,delay=1us"


def test_topology_as_tables(command: Command) -> None:
    out = command("topology", WORDS).out
    assert "4 switches" in out
    assert "2 hosts" in out
    assert "4 links" in out
    assert "1:h1 2:spine1 3:spine2" in out
    assert "10Gbps" in out


def test_topology_as_json(command: Command) -> None:
    topology = json.loads(command("topology", WORDS, "-o", "json").out)
    assert topology["kind"] == "leaf-spine"
    assert topology["hosts"][0] == {
        "name": "h1",
        "id": 1,
        "ip": "10.0.1.2",
        "mac": "02:00:0a:00:01:02",
        "switch": "leaf1",
        "port": 1,
        "rate_bps": 10_000_000_000,
        "delay_ns": 1000,
    }
    assert topology["prefixes"] == {"leaf1": ["10.0.1.0/24"], "leaf2": ["10.0.2.0/24"]}


def test_a_part_of_a_topology(command: Command) -> None:
    out = command("topology", WORDS, "--show", "links").out
    assert out.startswith("4 links\n")
    assert "hosts" not in out
    assert list(json.loads(command("topology", WORDS, "--show", "links", "-o", "json").out)) == [
        "kind",
        "spec",
        "links",
    ]


TRIANGLE = {
    "hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"}},
    "switches": {"s1": {}, "s2": {}, "s3": {}},
    "links": [["h1", "s1-p1"], ["s1-p2", "s2-p2"], ["s1-p3", "s3-p2"], ["s3-p3", "s2-p3"]],
}


@pytest.mark.parametrize("words", ["leaf-spine:leaves=2,spines=2,hosts=2", "dragonfly:p=1,a=2,h=1", ""])
def test_a_drawing_of_a_topology(words: str, command: Command, tmp_path: Path) -> None:
    """It names every node, and repeats byte for byte; a file that cannot be written is named."""
    (tmp_path / "triangle.json").write_text(json.dumps(TRIANGLE), "utf-8")
    words = words or str(tmp_path / "triangle.json")
    file = tmp_path / "network.svg"
    result = command("topology", words, "--svg", str(file))
    assert (result.status, result.out) == (0, f"{file}\n"), result.err
    drawing = file.read_text("utf-8")
    texts = set(re.findall(r"<text[^>]*>([^<]+)</text>", drawing))
    network = parse_topology(words)
    assert texts >= {switch.name for switch in network.switches} | {host.name for host in network.hosts}
    assert command("topology", words, "--svg", str(file)).status == 0
    assert file.read_text("utf-8") == drawing
    refusal = command("topology", words, "--svg", str(tmp_path / "none" / "x.svg"))
    assert (refusal.status, refusal.err.count("\n")) == (1, 1)
    assert "none/x.svg" in refusal.err


def known_schemes() -> list[str]:
    """Those that the parser names when it is given another one."""
    with pytest.raises(SpecError) as caught:
        parse_scheme("nosuchscheme")
    return str(caught.value).partition("expected ")[2].split(", ")


@pytest.mark.parametrize("scheme", known_schemes())
def test_schemes_lists_exactly_the_keys_that_are_understood(command: Command, scheme: str) -> None:
    rows = command("schemes", scheme, "-o", "json").rows
    with pytest.raises(SpecError) as caught:
        parse_scheme(f"{scheme}:nosuchkey=1")
    known = str(caught.value).partition("expected ")[2].split(", ")
    assert [row["key"] for row in rows] == known


def test_schemes_shows_the_real_defaults(command: Command) -> None:
    rows = {row["key"]: row["default"] for row in command("schemes", "flowcut", "-o", "json").rows}
    assert (rows["variant"], rows["rtt"], rows["age"], rows["kmax"]) == (
        "full",
        "4",
        "from the topology",
        "off",
    )
    assert {row["scheme"] for row in command("schemes", "-o", "json").rows} == set(known_schemes())


def test_schemes_with_a_topology_computes_what_follows_from_it(command: Command) -> None:
    rows = {row["key"]: row for row in command("schemes", "letflow", "--topology", WORDS, "-o", "json").rows}
    assert rows["gap"]["default"].endswith("us")
    assert rows["queue"]["default"].endswith("KiB")


# ---- shell ----


def fake_environment(folder: Path) -> None:
    """A .venv-ptf whose Python says what it was called with."""
    python = folder / ".venv-ptf" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    (folder / ".venv-ptf" / "lib" / "python3.11" / "site-packages" / "p4runtime_sh").mkdir(parents=True)


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `tailrace shell` in a folder, with the package found by PYTHONPATH."""
    code = "import sys, tailrace.cli.inspect.shell as s; from tailrace.cli.main import main; from pathlib import Path;"
    code += "s.ROOTS = (Path.cwd(),); sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, "shell", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_shell_becomes_p4runtime_shell_on_the_switch(fabric: Fabric, tmp_path: Path) -> None:
    fake_environment(tmp_path)
    done = shell(tmp_path, "leaf2", "--run", str(fabric.run_file), "--election-id", "7")
    leaf = fabric.switches["leaf2"]
    assert done.stderr == ""
    assert done.stdout.split() == [
        *("-m", "p4runtime_sh", "--grpc-addr", leaf.address),
        *("--device-id", "2", "--election-id", "0,7"),
    ]


def test_shell_passes_tls_on(fabric: Fabric, tmp_path: Path, bare_address: str) -> None:
    fake_environment(tmp_path)
    done = shell(tmp_path, "x", "--address", f"x={bare_address}", "--ca", "missing.pem")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "missing.pem" in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["leaf*"], 2, "name one"),
        (["leaf9"], 2, "no switch 'leaf9'"),
        (["leaf1", "--p4info", "x"], 2, "--p4info"),
        (["leaf1"], 1, "p4runtime-shell is not installed"),
    ],
)
def test_shell_says_what_is_wrong(
    fabric: Fabric, tmp_path: Path, words: list[str], status: int, part: str
) -> None:
    done = shell(tmp_path, *words, "--run", str(fabric.run_file))
    assert (done.returncode, done.stdout) == (status, "")
    assert part in done.stderr
    assert done.stderr.count("\n") == 1


def test_shell_that_is_not_installed(fabric: Fabric, tmp_path: Path) -> None:
    """In a checkout `make setup` makes its environment; with a wheel there is no Makefile, and pip does."""
    done = shell(tmp_path, "leaf1", "--run", str(fabric.run_file))
    place = tmp_path / ".venv-ptf"
    assert f"python3 -m venv {place} && {place}/bin/pip install p4runtime-shell" in done.stderr
    (tmp_path / "Makefile").touch()
    assert "run `make setup`" in shell(tmp_path, "leaf1", "--run", str(fabric.run_file)).stderr


def test_resources_of_programs(command: Command) -> None:
    """All programs; what one has beyond another; a name that is none."""
    every = {row["program"]: row for row in command("resources", "-o", "json").rows}
    assert sorted(every) == sorted(path.stem for path in P4_BUILD.glob("*.json"))
    (row,) = command("resources", "rlb_presto", "--over", "presto", "-o", "json").rows
    assert row["register_bits"] == every["rlb_presto"]["register_bits"] - every["presto"]["register_bits"] > 0
    (none,) = command("resources", "presto", "--over", "presto", "-o", "json").rows
    assert {value for value in none.values() if isinstance(value, int)} == {0}
    assert len(command("resources", "--over", "presto", "-o", "json").rows) == len(every) - 1
    result = command("resources", "rlb_prest")
    assert result.status == 2
    assert "program 'rlb_prest' is not known; did you mean rlb_presto?" in result.err
