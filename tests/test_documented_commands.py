# SPDX-License-Identifier: Apache-2.0
"""Every command that README.md and docs/ print is taken as it is printed: small ones run, large ones are planned,
those that look at a network look at one.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from tailrace.cli import experiment_command, make_run, paper_command
from tailrace.cli.main import main
from tailrace.controller import runfile
from tailrace.controller.runfile import RunFile, RunSwitch
from tailrace.experiments.plan import defaults
from tailrace.papers.document import read_document
from tailrace.sim.errors import RunError
from tailrace.topology import parse_topology
from tests import long
from tests.controller.inspect.served import install_scheme, served
from tests.controller.live import live
from tests.forked import command
from tests.test_readme import DOCS, EXPERIMENTS, OF_USERS, ROOT, SWITCH, TUTORIALS, block_after
from tests.test_scheme_pages import EXPLAINED

COMMANDS = (
    ROOT / "docs" / "reference" / "commands.md"
)  # generated from the help, whose examples are shortened
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    # tests/labs executes the commands of lab sheets
    *(page for page in DOCS if page not in (*OF_USERS, *TUTORIALS, COMMANDS) and page.parent.name != "labs"),
    *SWITCH,
)
LOOK = ("flows", "tables", "groups", "counters", "registers", "queues", "paths", "diff")
LIVE = ("ls", "link", "capture", "events", "write", "delete")
"""What needs the control of a running network, or changes its switches."""

ELSEWHERE = ("shell", "--address", "tailrace --debug", "tailrace_switch_grpc")
"""What needs a terminal, or servers of somebody else."""

USAGE = re.compile(r"[\[|…]|\b(SRC|DST|SWITCH|NAME|SPEC)\b")
"""What only shows how a command is written."""

SMALL = "fat-tree:k=4 --workload permutation:size=256KiB"
"""In commands that run in seconds."""

REGISTERS = "tailrace registers"
"""It reads hundreds of thousands of cells of each switch: outside of `make test-all` of one switch only."""

REACHED = "all words were taken"

FINDING = re.compile(r"^\* \*\*(.+?)\*\*(.*?)(?=^\* |^$)", re.DOTALL | re.MULTILINE)
"""A point of a list that begins with a title."""

RATIO = re.compile(r"\d+\.\d+ \(\d+\.\d+\.\.\d+\.\d+\)")


def joined(block: str) -> list[str]:
    """The lines of a code block; a line that ends with a backslash goes on."""
    return re.sub(r" *\\\n *", " ", block).splitlines()


def commands(program: str) -> list[str]:
    """Every command line of a program in code blocks and in code within lines, without comments."""
    command_lines = dict[str, None]()
    for page in PAGES:
        text = page.read_text("utf-8")
        blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        lines = [line for block in blocks for line in joined(block)]
        lines += re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
        for line in lines:
            line = " ".join(re.split(r" #|   ", line.strip())[0].split()).removeprefix(".venv/bin/")
            if line.startswith(f"{program} ") and not USAGE.search(line):
                command_lines[line] = None
    return list(command_lines)


ALL = [line for line in commands("tailrace") if not any(word in line for word in ELSEWHERE)]
TAILRACE = [line for line in ALL if "--plugin" not in line]
MAKE_RUN = [line for line in commands("make run") if "BMV2_SWITCH_EXE" not in line]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files are that commands name, and the results go."""
    experiment = block_after(EXPERIMENTS, "```toml")
    for name in ("slow.toml", "FILE.toml"):
        (tmp_path / name).write_text(experiment, "utf-8")
    (tmp_path / "mine").symlink_to(ROOT / "examples" / "two_choices")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    write_files(ROOT / "docs" / "programs" / "tutorial.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs: everything before that happens, then the command fails with REACHED."""

    def stop(*_: object, **__: object) -> None:
        raise RunError(REACHED)

    def choose_target(wanted: str, _: object) -> str:
        return "native" if wanted in ("auto", "bmv2") else wanted

    run = sys.modules["tailrace.api.run"]
    for name in ("run_plan", "run_grid"):
        monkeypatch.setattr(run, name, stop)
    monkeypatch.setattr("tailrace.emulation.mininet.MininetBackend", stop)
    monkeypatch.setattr(paper_command, "run_paper", stop)
    for module in (run, experiment_command):
        monkeypatch.setattr(module, "choose_target", choose_target)


def test_there_are_commands() -> None:
    assert len(TAILRACE) > 30
    assert len(MAKE_RUN) > 8


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in TAILRACE
        if line.split()[1] in ("run", "compare", "sweep", "paper") and line.split()[2:]
    ],
)
def test_experiments_are_planned(
    folder: Path, planned: None, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    words = shlex.split(line)[1:]
    if words[:2] == ["paper", "list"]:
        assert main(words) == 0
        return
    assert main(words) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"tailrace: {REACHED}"


@pytest.mark.parametrize("line", MAKE_RUN)
def test_make_run_is_planned(
    folder: Path, planned: None, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    environment = dict(word.split("=", 1) for word in shlex.split(line)[2:])
    assert main(make_run.command(environment)) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"tailrace: {REACHED}"


@pytest.mark.parametrize("line", [line for line in TAILRACE if SMALL in line])
def test_small_experiments_run(folder: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", EXPLAINED, ids=lambda page: page.stem)
def test_a_scheme_runs_as_its_page_says(folder: Path, capsys: pytest.CaptureFixture[str], page: Path) -> None:
    """The first command of the section "Run it"."""
    block = block_after(page.read_text("utf-8").partition("\n## Run it\n")[2], "```")
    assert main(shlex.split(joined(block)[0])[1:]) == 0
    assert "packets out of order" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", [line for line in ALL if "--plugin" in line and ("two-choices" in line or "examples/" in line)]
)
def test_plugins_run(folder: Path, line: str) -> None:
    """In a process of its own, for what is loaded stays; those of docs/extend's NICs: tests/extend."""
    done = command(shlex.split(line)[1:], folder)
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in TAILRACE
        if line.split()[1] in ("schemes", "topology", "results") or "paths h1 h9 --scheme" in line
    ],
)
def test_what_explains_words(folder: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The switches of `make run`, with Flowcut; the run file that leads to them."""
    topology = parse_topology(defaults.TOPOLOGY)
    with served(len(topology.switches)) as switches:
        by_name = {switch.name: place for switch, place in zip(topology.switches, switches, strict=True)}
        places = {name: RunSwitch(s.address, s.device_id, "flowcut") for name, s in by_name.items()}
        path = tmp_path_factory.mktemp("run") / "run.json"
        scheme = "flowcut:buckets=4"
        run = RunFile(defaults.TOPOLOGY, scheme, "native", tick_ns=1000, relay=None, switches=places)
        runfile.write(path, run)
        install_scheme(topology, scheme, by_name)
        yield path


@pytest.mark.parametrize(
    "line", [line for line in TAILRACE if line.split()[1] in LOOK and "--scheme" not in line]
)
def test_what_looks_at_a_network(network: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    words = [*shlex.split(line)[1:], "--run", str(network)]
    words += ["leaf1"] if line == REGISTERS and not long.ALL else []
    assert main([*words, *(["--rounds", "1"] if "--watch" in words else [])]) == 0
    output = capsys.readouterr()
    assert output.out or output.err.startswith(("no ", "all ", "none ", "6 switches track no flow"))


@pytest.mark.parametrize(
    "line",
    [line for line in TAILRACE if line.split()[1] in LIVE and (line.split()[2:] or line == "tailrace ls")],
)
def test_what_changes_a_network(
    network: Path, folder: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """As the run file of a network in Mininet leads to it; what follows the network ends with it."""
    with tempfile.TemporaryDirectory(prefix="live-") as place:
        socket, run_file = Path(place) / "s", Path(place) / "run.json"
        runfile.write(run_file, structs.replace(runfile.read(network), control=str(socket)))
        with live(socket, defaults.TOPOLOGY) as running:
            end = threading.Timer(1.0, running.end)
            end.start()
            assert main([*shlex.split(line)[1:], "--run", str(run_file)]) == 0
            end.cancel()
    output = capsys.readouterr()
    assert (
        output.out
        or "link.pcap" in line
        or output.err.startswith("there are no events")
        or "--follow" in line
    )


def test_a_report_of_what_ran(folder: Path) -> None:
    """The commands that documents print for a folder of results."""
    lines = [line for line in TAILRACE if line.split()[1] == "report"]
    assert (
        main(["run", "--scheme", "ecmp", "--target", "virtual", "--workload", "permutation:size=16KiB"]) == 0
    )
    for line in lines:
        words = shlex.split(line)[1:]
        Path(words[1]).parent.mkdir(exist_ok=True)
        if not Path(words[1]).exists():
            Path(words[1]).symlink_to(folder / "out")
        assert main(words) == 0


def test_replays_of_what_ran(folder: Path) -> None:
    """The commands of docs/compare/view.md, in their order, and README's."""
    page = (ROOT / "docs" / "compare" / "view.md").read_text("utf-8")
    for line in joined(block_after(page, "```")):
        assert main(shlex.split(line)[1:]) == 0, line
    (folder / "out").symlink_to(folder / "flowcut")
    lines = [line for line in TAILRACE if line.split()[1:3] == ["view", "out"]]
    assert len(lines) == 1
    assert main(shlex.split(lines[0])[1:]) == 0


FILE = re.compile(r"Write this as `([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
STEP = re.compile(r"^```(\w*)\n(.*?)^```|(Press Enter)", re.DOTALL | re.MULTILINE)
"""A block of a tutorial, with its language, or the words that resume a stopped run."""


def write_files(page: Path, folder: Path) -> None:
    """Writes the files that a tutorial shows."""
    for name, content in FILE.findall(page.read_text("utf-8").replace("write this as", "Write this as")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, "utf-8")


class Stopped:
    """A run that `--stop-at` has stopped, in a process of its own; `resume` presses Enter and returns its table."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tailrace.cli.main", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        lines = [""]
        while "press Enter" not in lines[-1]:
            lines.append(self.process.stderr.readline())
            assert lines[-1], lines

    def resume(self) -> str:
        output, errors = self.process.communicate("\n", timeout=120)
        assert self.process.returncode == 0, errors
        return output


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.parent.name)
def test_tutorials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], page: Path
) -> None:
    """Every command of a tutorial, in its order; every line of output that it shows."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    stopped, output = None, ""
    for language, block, enter in STEP.findall(page.read_text("utf-8")):
        if enter:
            assert stopped is not None
            output, stopped = stopped.resume(), None
        elif language == "text":
            assert [line for line in block.splitlines() if line.strip() not in output] == [], output
        elif not language:
            output = ""
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line)[1:]
                if "--stop-at" in words:
                    stopped = Stopped(words)
                elif "--plugin" in words:
                    done = command(words, tmp_path)
                    assert done.returncode == 0, done.stderr
                    output += done.stdout
                else:
                    assert main(words) == 0, line
                    output += capsys.readouterr().out
    assert stopped is None


def test_figures_are_drawn(folder: Path) -> None:
    """Every command of docs/compare/figures.md, in its order, then its Python; and README's, of what a run wrote."""
    page = (ROOT / "docs" / "compare" / "figures.md").read_text("utf-8")
    for line in block_after(page, "```").splitlines():
        assert main(shlex.split(line)[1:]) == 0, line
    exec(block_after(page, "```python"), {})
    (folder / "out").symlink_to(folder / "plotted")
    for line in (line for line in TAILRACE if line.split()[1:3] == ["plot", "out"]):
        assert main(shlex.split(line)[1:]) == 0
    assert {path.suffix for path in folder.glob("*.p??")} == {".pdf", ".png"}


def test_findings_are_those_of_the_results() -> None:
    """Each of README's five is a conclusion of docs/results, by its title, with numbers of that conclusion."""
    conclusions = dict(re.findall(FINDING, (ROOT / "docs" / "results" / "README.md").read_text("utf-8")))
    findings = re.findall(FINDING, (ROOT / "README.md").read_text("utf-8"))
    assert len(findings) == 5
    for title, text in findings:
        numbers = re.findall(RATIO, text)
        assert numbers, title
        assert set(numbers) <= set(re.findall(RATIO, conclusions[title])), title


def test_packets_out_of_order_are_those_of_the_figure() -> None:
    """docs/compare/make-run.md beside docs/results/common, which `tailrace paper common` wrote."""
    document = read_document(ROOT / "docs" / "results" / "common" / "common_1_all.json")
    shares = {cell.label: cell.metrics["out_of_order_share"] for cell in document.cells}
    page = (ROOT / "docs" / "compare" / "make-run.md").read_text("utf-8")
    text = page.partition("packets arrived out of order as follows")[2].partition("\n\n")[0]
    order = [
        *("spritz scout", "spritz spray", "rlb presto", "presto", "rlb drill", "drill"),
        *("rlb letflow", "letflow", "rlb hermes", "hermes", "letflow+hf2t", "letflow"),
    ]
    assert re.findall(r"\d+\.\d(?= %)", text) == [f"{100 * shares[label]:.1f}" for label in order]
    assert {shares[label] for label in ("flowcut", "ecmp+hf2t", "flowcut+hf2t")} == {0}
