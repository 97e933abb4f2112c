# SPDX-License-Identifier: Apache-2.0
"""The runner of the packet tests: what it tells the switch, and what it says when it cannot."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from tailrace.p4rt import programs

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "run_ptf.py"
P4INFOS = sorted((ROOT / "p4src" / "build").glob("*.p4info.txtpb"))


@pytest.fixture(scope="module")
def run_ptf() -> ModuleType:
    """The script as a module."""
    spec = util.spec_from_file_location("run_ptf", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_switch_that_is_missing(run_ptf, monkeypatch):
    """Where BMv2 is missing, the line says what has it."""
    monkeypatch.setenv("PATH", "")
    missing = "simple_switch_grpc is not on PATH; `make vm` makes a machine that has it (docs/programs/vm.md)"
    for name, text in (
        ("simple_switch_grpc", missing),
        ("some_switch", "some_switch is neither in .venv nor on PATH"),
    ):
        with pytest.raises(run_ptf.PtfError) as caught:
            run_ptf.program(".venv", name)
        assert str(caught.value) == text


def test_all_programs_expect_the_same_switch():
    """One switch serves all tests, so no program may want another CPU port."""
    constants = set()
    for path in P4INFOS:
        info = text_format.Parse(path.read_text("utf-8"), p4i.P4Info())
        (annotation,) = [each for each in info.pkg_info.structured_annotations if each.name == "switch"]
        constants.add(tuple(sorted((p.key, p.value.int64_value) for p in annotation.kv_pair_list.kv_pairs)))
    assert len(constants) == 1


@pytest.mark.parametrize("target", ["native", "bmv2"])
def test_switch_command(run_ptf, target):
    """Both get BMv2's options; a rate on the command line is understood by the native switch only."""
    program = programs.load("ecmp")
    command = run_ptf.switch_command(target, "switch")
    options = command[command.index("--") + 1 :]
    assert options[options.index("--cpu-port") + 1] == str(program.constant("cpu_port"))
    assert options[options.index("--priority-queues") + 1] == str(program.constant("priority_queues"))
    assert ("--port-rate" in options) == (target == "native")
    assert "--thrift-port" not in command, "a simple_switch_grpc that is built without Thrift refuses it"


@pytest.mark.parametrize("thrift_port", [9090, 0])
def test_tests_are_told_of_thrift(run_ptf, tmp_path, thrift_port):
    """Those that need it are skipped where the switch has none."""
    command = run_ptf.ptf_command("bmv2", "ptf", tmp_path, [], thrift_port=thrift_port)
    assert f"thrift_port={thrift_port};" in command[command.index("--test-params") + 1]


def test_a_plug_in_brings_its_own_tests(run_ptf, tmp_path):
    """Those of its folder run, with its programs; a folder without any is one line."""
    with pytest.raises(run_ptf.PtfError, match="ptf_tests: no such folder; expected packet tests in it"):
        run_ptf.ptf_command("native", "ptf", tmp_path, [], tmp_path)
    (tmp_path / "ptf_tests").mkdir()
    command = run_ptf.ptf_command("native", "ptf", tmp_path, ["one"], tmp_path)
    assert command[command.index("--test-dir") + 1] == str(tmp_path / "ptf_tests")
    assert f"plugin='{tmp_path / 'build'}'" in command[command.index("--test-params") + 1]
    assert command[-1] == "one"


def test_missing_tests_are_one_line(tmp_path):
    """No folder of tests: one line on standard error, exit code 2."""
    command = [sys.executable, str(SCRIPT), "--target", "native", "--parts=2", f"--plugin={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["run_ptf"]


def test_switch_that_dies_ends_the_tests(run_ptf, tmp_path):
    """Without a switch every test would wait for its timeout."""
    with subprocess.Popen([sys.executable, "-c", ""]) as switch:
        assert (
            run_ptf.run_beside(switch, [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path) == 1
        )


def test_exit_code_is_that_of_the_tests(run_ptf, tmp_path):
    """As long as the switch lives."""
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as switch:
        assert run_ptf.run_beside(switch, [sys.executable, "-c", "raise SystemExit(3)"], tmp_path) == 3
        run_ptf.stop(switch)


def test_parts_share_the_files_of_tests(run_ptf, tmp_path, capsys):
    """Each file is in one part, the parts are about as long; what all of them printed is shown, and one that fails makes the whole fail."""
    folder = tmp_path / "ptf_tests"
    folder.mkdir()
    for name, length in (("test_a.py", 30), ("test_b.py", 50), ("test_c.py", 10)):
        (folder / name).write_text("#" * length)
    script = tmp_path / "part.py"
    script.write_text("import sys; print(*sys.argv[3:]); raise SystemExit('test_b' in sys.argv)\n")
    run_ptf.__file__ = str(script)
    options = argparse.Namespace(parts=2, plugin=tmp_path, target="native", tests=[])
    assert run_ptf.run_parts(options) == 1
    assert capsys.readouterr().err == "test_b\ntest_a test_c\n"
    options.tests = ["test_a.OneTest", "test_c.TwoTest", "test_a.OtherTest"]
    assert run_ptf.run_parts(options) == 0
    assert capsys.readouterr().err == "test_a.OneTest test_c.TwoTest\ntest_a.OtherTest\n"


def test_smoke_tests_are_tests():
    """One a line, each in its file."""
    for name in (ROOT / "ptf_tests" / "smoke.txt").read_text("utf-8").splitlines():
        module, _, test = name.partition(".")
        assert f"\nclass {test}(" in (ROOT / "ptf_tests" / f"{module}.py").read_text("utf-8"), name
