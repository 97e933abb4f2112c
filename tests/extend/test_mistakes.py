# SPDX-License-Identifier: Apache-2.0
"""Mistakes in plug-ins, wherever they show: one line with the plug-in's file and line, and nothing of ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import cycle
from pathlib import Path

import pytest

from tailrace.spec import plugins
from tests.extend.conftest import ROOT, Run, documented
from tests.extend.test_from_outside import METRIC, RING, ROUND
from tests.extend.test_from_outside import WORDS as RING_WORDS
from tests.long import some

FAULT = """
from dataclasses import dataclass
from typing import Annotated

from tailrace.api.extend import LinkDown, keys, register_fault


@register_fault("flaky", "a link that dies for a while")
@dataclass(frozen=True, slots=True)
class Flaky:
    at_ns: Annotated[int, keys.time("at", "when")] = 1000

    def resolve(self, topology, rng):
        link = topology.links[0]
        return (LinkDown(link.a, link.b, self.at_ns, self.at_ns + 5000),)
"""
FILES = {"ring": RING, "round": ROUND, "spread": METRIC, "flaky": FAULT}
DOWN = "return (LinkDown(link.a, link.b, self.at_ns, self.at_ns + 5000),)"
TRANSFER = "Transfer(host, hosts[(number + 1) % len(hosts)], self.size_bytes, rng.randint(0, 1000))"
BUILD = "def build(self, builder: Builder) -> None:\n"
SWITCHES = 'keys.integer("switches", "of the ring", least=3, most=500)'


def transfer(rest: str) -> str:
    return f"Transfer(host, hosts[(number + 1) % len(hosts)], {rest})"


RAISED = (
    *("RuntimeError('two\\nlines')", "SystemExit(0)", "SystemExit('bye')", "StopIteration()"),
    *("GeneratorExit()", "RecursionError()", "OSError(2, 'no', 'such')", "BrokenPipeError()"),
    *("ImportError('x', name='x')", "BaseException('b')", "NotImplementedError", "ValueError('x' * 3000)"),
)
CALLED = (
    ("ring", BUILD, f"{BUILD}        raise {{}}\n"),
    ("round", "hosts = topology.hosts\n", "raise {}\n"),
    ("spread", "times = [", "raise {}\n    times = ["),
    ("flaky", "link = topology.links[0]", "raise {}"),
)
"""Where whatever is called raises: what stands there, and what stands there then."""

SMALL_CASES: list[tuple[str, str, str]] = [
    # at import, and in declarations
    ("ring", SWITCHES, "keys.integr('switches', 'x')"),
    ("ring", SWITCHES, "keys.integer('switches', 'of the ring', least='x')"),
    ("ring", SWITCHES, "keys.integer('rate', 'of the ring')"),
    ("ring", "@dataclass(frozen=True, slots=True)\n", ""),
    ("ring", "def build", "def bild"),
    ("ring", '"ring", "switches in a ring"', "5, 'x'"),
    ("ring", "if self.switches == 13", "if self.swtches == 13"),
    ("round", "def transfers(", "def trnsfers("),
    ("flaky", "def resolve(self, topology, rng)", "def resolve(self)"),
    ("spread", '@register_metric("spread",', "@register_metric(5,"),
    # what is raised, by whatever is called
    *((file, old, new.format(each)) for (file, old, new), each in zip(cycle(CALLED), RAISED, strict=False)),
    # what is given
    ("ring", "hosts=self.hosts)", 'hosts="3")'),
    ("ring", 'f"s{number}"', '"s0"'),
    ("ring", "builder.link(name, names[(number + 1) % len(names)])", "pass"),
    *(
        ("round", TRANSFER, transfer(rest))
        for rest in (
            *("'7', 0", "7, 0.5", "7, 0, after=(999,)", "7, 0, after=5", "7, 0, flow_class=3"),
            *("7, 0, steering='no'", "7, -1", "7, 0, sport=99999999", "10**30, 0"),
        )
    ),
    ("round", TRANSFER, "Transfer()"),
    ("round", "hosts = topology.hosts\n", "return 5\n        hosts = ()\n"),
    *(("spread", "max(times) / min(times)", each) for each in ("'x'", "10**400", "True", "result.rowz")),
    ("spread", "def spread(result: Result)", "def spread()"),
    *(("flaky", DOWN, f"return {each}") for each in ("None", "5", "('x',)", "(LinkDown(link.a),)")),
    ("flaky", DOWN, "return (LinkDown(link.a, link.b, 'x', 2),)"),
]

PATHS = "    def paths(self"
PROGRESS = "    def _on_progress(self)"
NIC = 'replace(nic, steering=SteeringConfig(algorithm="bend", parameters=parameters))'
RESOLVED = 'self.resolved(ResolvedBend, topology, context, program="ecmp")'
HOST_CASES: list[tuple[str, str, str]] = [
    *(("bend", "return self.port", f"return {each}") for each in ("'7'", "None", "-1", "self.prt")),
    *(
        ("bend", NIC, each)
        for each in (
            *("replace(nic, steerng=5)", "None", "replace(nic, steering='bend')"),
            *("replace(nic, rto_ns=-1)", "replace(nic, steering=SteeringConfig(algorithm='no'))"),
        )
    ),
    *(("bend", "return SourcePortPaths(64)", f"return {each}") for each in ("None", "SourcePortPaths('x')")),
    *(("bend", RESOLVED, each) for each in ("None", "self", "ResolvedBend()")),
    ("bend", RESOLVED, "self.resolved(int, topology, context, program='ecmp')"),
    ("bend", RESOLVED, "self.resolved(ResolvedBend, topology, context, program=5)"),
    (
        "bend",
        "@scheme\nclass BendConfig(SchemeConfig, frozen=True, kw_only=True)",
        "@scheme\nclass BendConfig",
    ),
    ("bend", "def resolve(", "def reslve("),
    ("bend", "def on_feedback(self, now_ns, feedback, ev)", "def on_feedback(self, now_ns)"),
    ("bend", "self.explored += 1", "self.explored = 'x'"),
    ("bend", "def nic(self, topology, context, scale)", "def nic(self)"),
    ("bend", PATHS, f"    def entities(self, plan):\n        return [5]\n\n{PATHS}"),
    ("bend", PATHS, f"    def watch(self, *a, **k):\n        raise OSError('x')\n\n{PATHS}"),
    ("bend", PATHS, f"    def watch(self, *a, **k):\n        return None\n\n{PATHS}"),
    ("aimd", "self.window, self.cut = 1.0", "self.windw, self.cut = 1.0"),
    ("aimd", "super()._on_progress()", "super()._on_progress(5)"),
    ("aimd", PROGRESS, f"    def peek(self):\n        return 'x'\n\n{PROGRESS}"),
    ("aimd", PROGRESS, f"    def on_sent(self):\n        pass\n\n{PROGRESS}"),
]
ENTRY = (
    "from tailrace.schemes.extend import P4TableAction, P4TableEntry, P4TableMatch\n"
    "        yield P4TableEntry('ipv4_routes', match=P4TableMatch({}), action=P4TableAction({}))\n"
    "        yield from common_entries(plan,"
)
SCHEME_CASES: list[tuple[str, str]] = [
    ("flowlet_config(plan, self.gap_ns)", "flowlet_config(plan, self.gap)"),
    ("yield from common_entries(plan,", "yield 5\n        yield from common_entries(plan,"),
    (
        "yield from common_entries(plan,",
        ENTRY.format("dst='10.0.0.0/8'", "'Ingress.routing.set_group', group=1"),
    ),
    ("yield from common_entries(plan,", ENTRY.format("nothing=1", "'drop'")),
    ("gap_ns=gap_ns)", 'gap_ns="x")'),
    ("def entities(self, plan: EntryPlan)", "def entities(self)"),
]


def check_message(done: subprocess.CompletedProcess[str], file: str) -> None:
    """It says what went wrong in the file, and nothing else."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("tailrace: ")]
    assert done.returncode in (1, 2), done.stderr
    assert len(lines) == 1, done.stderr
    assert re.search(rf"/{file}\.py: line \d+", lines[0]), lines[0]
    for wrong in ("internal error", "Traceback", str(ROOT / "tailrace"), "tailrace/spec", "tailrace/hosts"):
        assert wrong not in done.stderr


def changed(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / f"{file}.py"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize(("file", "old", "new"), some(SMALL_CASES, 4))
def test_of_networks_traffic_faults_and_metrics(
    forked_tailrace: Run, tmp_path: Path, file: str, old: str, new: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    changed(folder, file, old, new)
    check_message(
        forked_tailrace("run", "--plugin", folder, "--scheme", "ecmp", *RING_WORDS, "--fault", "flaky"), file
    )


@pytest.mark.parametrize(("file", "old", "new"), some(HOST_CASES, 3))
def test_of_schemes_and_transports_in_nics(
    forked_tailrace: Run, tmp_path: Path, file: str, old: str, new: str
) -> None:
    folder = documented(tmp_path / "mine")
    changed(folder, file, old, new)
    words = ("--workload", "permutation:size=64KiB,peers=remote", "--target", "virtual")
    more = ("--fault", "drop:rate=0.05", "--out", "out")
    check_message(
        forked_tailrace("run", "--plugin", folder, "--scheme", "bend", "--transport", "aimd", *words, *more),
        file,
    )


@pytest.fixture
def two_choices(tmp_path: Path) -> Path:
    """The example, elsewhere."""
    copied = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "examples" / "two_choices", copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


RUN = ("run", "--scheme", "two-choices", "--workload", "permutation:size=16KiB", "--target", "virtual")


@pytest.mark.parametrize(("old", "new"), some(SCHEME_CASES, 2))
def test_of_schemes_in_switches(forked_tailrace: Run, two_choices: Path, old: str, new: str) -> None:
    changed(two_choices, "two_choices", old, new)
    check_message(forked_tailrace(*RUN, "--plugin", two_choices), "two_choices")


def test_workers_report_them_too(tailrace: Run, tmp_path: Path) -> None:
    """In another process nobody sees the frames."""
    folder = documented(tmp_path / "mine")
    changed(folder, "bend", "return self.port", "return 'x'")
    words = ("--workload", "permutation:size=16KiB,peers=remote", "--target", "virtual", "--out", "out")
    done = tailrace(
        *("sweep", "--plugin", folder, "--scheme", "bend", "--workers", 2, "--set", "seed=1,2", *words)
    )
    assert done.returncode in (1, 2)
    assert re.search(r"/bend\.py: line \d+: next_ev returned 'x', expected int", done.stderr)
    assert "internal error" not in done.stderr


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("\n\nx = (\n", "mine.py: line 3: SyntaxError"),
        ("\nraise SyntaxError('no')\n", "mine.py: line 2: SyntaxError: no"),
        (
            "import sys\nsys.path.insert(0, __file__[:-7] + 'more')\nimport of_mine\n",
            "of_mine.py: line 2: Syn",
        ),
    ],
)
def test_errors_of_syntax(forked_tailrace: Run, tmp_path: Path, text: str, place: str) -> None:
    """Where the parser stopped, if that is in a file of the plug-in."""
    (tmp_path / "mine.py").write_text(text, "utf-8")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "of_mine.py").write_text("\ndef x(:\n", "utf-8")
    done = forked_tailrace("topologies", "--plugin", tmp_path / "mine.py")
    assert done.returncode == 2
    assert f"/{place}" in done.stderr


def test_an_error_while_one_loads_is_no_error_of_a_key(forked_tailrace: Run, tmp_path: Path) -> None:
    """Plug-ins are loaded when the first spec is parsed, whatever they define."""
    (tmp_path / "mine.py").write_text("import of_nobody\n", "utf-8")
    done = forked_tailrace("run", "--scheme", "ecmp", "--target", "virtual", "--plugin", tmp_path / "mine.py")
    problem = "ModuleNotFoundError: No module named 'of_nobody'"
    assert (done.returncode, done.stderr) == (2, f"tailrace: plug-in {tmp_path}/mine.py: line 1: {problem}\n")


def test_a_program_that_is_not_compiled(forked_tailrace: Run, two_choices: Path) -> None:
    """Where it was looked for, and how it is compiled."""
    shutil.rmtree(two_choices / "build")
    done = forked_tailrace(*RUN, "--plugin", two_choices)
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert "program two_choices: no two_choices.json in " in line
    assert str(two_choices / "build") in line
    assert f"python scripts/compile_p4.py -I p4src {two_choices} {two_choices / 'build'}" in line


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGHUP"])
def test_a_signal_while_one_loads_is_no_mistake(forked_tailrace: Run, tmp_path: Path, signal: str) -> None:
    """The command ends as it always does then."""
    text = f"import os, signal\n\nos.kill(os.getpid(), signal.{signal})\nfor _ in range(1000):\n    pass\n"
    (tmp_path / "slow.py").write_text(text, "utf-8")
    done = forked_tailrace("topologies", "--plugin", tmp_path / "slow.py")
    assert (done.returncode, done.stderr) == (
        {"SIGTERM": 143, "SIGHUP": 129}[signal],
        "tailrace: interrupted\n",
    )


def test_mistakes_of_ours_are_not_blamed_on_plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are a full disk and a signal."""
    monkeypatch.setattr(plugins, "_loaded", {tmp_path / "mine.py": ""})
    for error in (KeyError("x"), OSError(28, "full"), KeyboardInterrupt(), MemoryError()):
        with pytest.raises(type(error)) as caught:
            raise error
        assert plugins.blame(caught.value) == ""
