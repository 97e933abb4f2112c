"""What cannot be run is refused in one line, before anything is started."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import run_fabric

from tailrace.topology import parse_topology
from tests.mininet.conftest import ROOT, SCRIPT, Harness

TOOLS = ("mnexec", "ifconfig", "ip", "ethtool", "cc")
FLOW = {"id": 3, "src": "10.0.1.2", "dst": "10.9.9.9", "bytes": 1, "start_ns": 0, "qpn": 1, "sport": 1}
NEAR = {**FLOW, "id": 4, "dst": "10.0.2.2"}
STEERED = {"transport": "dctcp", "steering": {"algorithm": "spray"}}
TOPOLOGY = msgspec.to_builtins(parse_topology("leaf-spine:leaves=2,spines=2,hosts=2"))
SLOW = {"kind": "link-slow", "a": "leaf1", "b": "spine1", "factor": 0.1}


def refused(harness: Harness, job: Path, **options: Any) -> str:
    """The line of a run that must end with 2 and leave nothing."""
    done = harness.run(job, **options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert harness.left_behind() == []
    return done.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topology": {}}, "kind"),
        ({"topology": {**TOPOLOGY, "links": 3}}, "links"),
        ({"topology": {**TOPOLOGY, "hosts": []}}, "host"),
        ({"scheme": {"kind": "ResolvedFlowcat"}}, "ResolvedFlowcat"),
        ({"scheme": {"kind": "ResolvedBasic"}}, "scheme: "),
        ({"target": "tofino"}, "tofino"),
        ({"time_scale": 0}, "time_scale"),
        ({"nick": {}}, "nick"),
        ({"nic": {"transport": "quic"}}, "transport"),
        ({"flows": [FLOW]}, "flow 3: no host has the address 10.9.9.9"),
        ({"flows": [{**FLOW, "bytes": 0}]}, "bytes"),
        ({"flows": [NEAR], "nic": STEERED}, "flow 4: there is no path list from 10.0.1.2 to 10.0.2.2"),
        ({"flows": [{**NEAR, "steering": "ecmp"}]}, "flow 4: there is no path list"),
        ({"faults": [{**SLOW, "b": "leaf2"}]}, "no link leaf1-leaf2"),
        ({"faults": [{**SLOW, "factor": 0}]}, "factor"),
        ({"faults": [{"kind": "drop", "a": "leaf1", "b": "spine1", "rate": 0.1}]}, "virtual"),
        ({"faults": [{"kind": "flood"}]}, "flood"),
    ],
)
def test_bad_job(
    harness: Harness,
    changes: dict[str, Any],
    words: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The line names what is wrong. In this process: whether anything stays is for the others to show."""
    for name in ("PATH", "GRPC_VERBOSITY"):  # which it sets
        monkeypatch.setenv(name, os.environ.get(name, "ERROR"))
    assert run_fabric.main([str(harness.job(**changes))]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"topology": 1}'])
def test_no_job(harness: Harness, tmp_path: Path, text: str | None) -> None:
    """The line names the file."""
    path = tmp_path / "broken.json"
    if text is not None:
        path.write_text(text)
    assert "broken.json" in refused(harness, path)


def tools(folder: Path, *without: str) -> str:
    """A PATH with the tools that a run needs, but for some."""
    folder.mkdir()
    for tool in TOOLS:
        path = shutil.which(tool)
        if tool not in without and path is not None:
            (folder / tool).symlink_to(path)
    return str(folder)


def test_no_mininet(harness: Harness, tmp_path: Path) -> None:
    """Without Mininet's program the line names the package."""
    path = tools(tmp_path / "bin", "mnexec")
    assert "install Debian's package mininet" in refused(harness, harness.job(), env={"PATH": path})


def test_no_bmv2(harness: Harness, tmp_path: Path) -> None:
    """Without BMv2 the line names its program."""
    path = tools(tmp_path / "bin")
    line = refused(harness, harness.job(target="bmv2"), env={"PATH": path})
    assert "simple_switch_grpc is not on PATH; `make vm`" in line


def test_no_right_to_make_namespaces(harness: Harness) -> None:
    """Root without the capability, as in a container, is told what is missing."""
    setpriv = shutil.which("setpriv")
    assert setpriv is not None
    bounded = [setpriv, "--bounding-set=-sys_admin", sys.executable, str(SCRIPT), str(harness.job())]
    assert "cannot make a PID namespace" in refused(harness, harness.job(), args=bounded)


def test_not_root(harness: Harness) -> None:
    """Any other user is told that root is needed."""
    code = (
        f"import os, runpy; os.geteuid = lambda: 1000; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    words = [sys.executable, "-c", code, str(harness.job())]
    path = f"{ROOT}:{ROOT / 'mininet'}"
    assert "needs root" in refused(harness, harness.job(), args=words, env={"PYTHONPATH": path})
