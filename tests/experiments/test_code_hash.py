# SPDX-License-Identifier: Apache-2.0
"""Which code the key of a task depends on: all that a run in virtual time loads, and nothing else of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cbuild.artifacts import PACKAGE
from tailrace.experiments.plan.experiment import make
from tailrace.study import code_hash
from tailrace.study import task as tasks
from tailrace.study.code_hash import HARMLESS, NOT_LOADED, is_hashed
from tailrace.study.task import code_of, key_of

LEAVES = "leaf-spine:leaves=2,spines=2,hosts=2"
DRAGONFLY = "dragonfly:p=1,a=2,h=1"
WEB = "poisson:cdf=websearch,most=100KB,load=0.5,duration=100us"
RUNS: list[dict[str, object]] = [
    {"scheme": "flowcut:variant=full", "fault": ["link-down:link=leaf1-spine1,at=1us", "ack-loss:rate=0.1"]},
    {"scheme": "flowcut:variant=nic,path=ugal-l", "topology": DRAGONFLY, "transport": "sr"},
    {"scheme": "spritz:variant=scout", "topology": DRAGONFLY, "workload": "adversarial:size=4KiB"},
    {"scheme": "spritz:variant=spray", "topology": "slim-fly:p=1,q=4", "fault": ["drop:rate=0.01"]},
    {"scheme": "valiant", "topology": DRAGONFLY, "workload": "allreduce:size=4KiB"},
    {"scheme": "rlb:variant=letflow", "pfc": "default", "transport": "dcqcn", "sample": "1us", "follow": [1]},
    {"scheme": "rlb:variant=drill", "fault": ["blackhole:pairs=0.5,where=spine,until=10us"]},
    {"scheme": "hermes", "transport": "dcqcn", "fault": ["link-slow:fraction=0.2,factor=0.5"]},
    {"scheme": "letflow:hf2t=99", "workload": WEB, "transport": "dcqcn", "gaps": True},
    {"scheme": "mp-rdma", "workload": "incast:degree=2,size=4KiB"},
    {"scheme": "presto", "fault": ["switch-restart:switch=spine1,at=5us,for=10us"], "transport": "tcp"},
]
"""Of all kinds, and small."""

CHILD = """
import json, sys
from pathlib import Path
from tailrace.experiments.plan.experiment import make
from tailrace.study.task import make_task, run_task
for words in json.loads(sys.argv[1]):
    run_task(make_task(make(words), "virtual", label="it", out=Path("it")))
print(json.dumps([getattr(module, "__file__", None) for module in list(sys.modules.values())]))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules of ours that runs in virtual time load, by their paths within the package."""
    usual = {"topology": LEAVES, "workload": "permutation:size=4KiB", "target": "virtual"}
    words = json.dumps([usual | run for run in RUNS])
    run = subprocess.run(
        [sys.executable, "-c", CHILD, words], capture_output=True, text=True, timeout=300, check=True
    )
    places = {room.resolve(): room.name for room in PACKAGE.iterdir()}
    files = set()
    for file in filter(None, json.loads(run.stdout.splitlines()[-1])):
        path = Path(file).resolve()
        for place, name in places.items():
            if path == place or path.is_relative_to(place):
                files.add((Path(name) / path.relative_to(place)).as_posix())
    return files


def test_what_is_loaded_counts_or_is_known_to_be_harmless(loaded: set[str]) -> None:
    """Whoever has a run load a module that does not count says here why it changes nothing."""
    assert len(loaded) > 150
    assert {name for name in loaded if not is_hashed(name)} == HARMLESS.keys()


def test_no_list_names_what_is_gone() -> None:
    """Each entry is a file or a folder, and says why."""
    for name, reason in {**NOT_LOADED, **HARMLESS}.items():
        assert (PACKAGE / name).exists(), name
        assert reason, name
    assert not NOT_LOADED.keys() & HARMLESS.keys()


@pytest.mark.parametrize(
    "name",
    [
        *("switch/core/c/core.c", "sim/network/c/network.h"),
        *("experiments/workloads/cdf/websearch.toml", "a/new/room.py"),
    ],
)
def test_what_counts(name: str) -> None:
    """What decides results and is no module, or is new."""
    assert is_hashed(name)


@pytest.mark.parametrize(
    "name",
    [
        *("cli/main.py", "report/figures/plot.py", "report/page.py", "mininet/fabric.py"),
        *("papers/files/rlb_fig3.toml", "report/paper/page.py", "py.typed"),
        *("p4src/flowcut/data.p4", "report/paper/page.md.j2", "switch/daemon/ports.py"),
    ],
)
def test_what_does_not_count(name: str) -> None:
    """What shows results, runs in real time, or is words."""
    assert not is_hashed(name)


def test_the_key_depends_on_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A change of a NIC's algorithm makes other tasks of the same words; one of a report does not."""
    package = tmp_path / "package"
    rooms = (package / "hosts", package / "report", tmp_path / "control")
    for folder in rooms:
        folder.mkdir(parents=True)
        (folder / "one.py").write_text("1")
    (package / "controller").symlink_to("../control")
    monkeypatch.setattr(code_hash, "PACKAGE", package)

    def digest() -> str:
        code_hash.code_sha256.cache_clear()
        return code_hash.code_sha256()

    before = digest()
    (package / "report/one.py").write_text("2")
    assert digest() == before
    (package / "hosts/one.py").write_text("2")
    after = digest()
    assert after != before
    (tmp_path / "control/one.py").write_text("2")
    assert digest() not in (before, after)
    monkeypatch.undo()
    code_hash.code_sha256.cache_clear()
    experiment = make({"scheme": "ecmp", "topology": LEAVES, "target": "virtual"})
    monkeypatch.setattr(tasks, "code_sha256", lambda: before)
    key, code = key_of(experiment), code_of(experiment)
    monkeypatch.setattr(tasks, "code_sha256", lambda: after)
    assert key_of(experiment) != key
    assert code_of(experiment) != code


def test_the_key_depends_on_the_program_of_its_own_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another compiled program of Flowcut makes other tasks of Flowcut, and no others."""
    both = [
        make({"scheme": scheme, "topology": LEAVES, "target": "virtual"}) for scheme in ("flowcut", "ecmp")
    ]
    before = [key_of(experiment) for experiment in both]
    real = tasks._program_sha256
    monkeypatch.setattr(
        tasks,
        "_program_sha256",
        lambda *what: real(*what)[::-1] if "Flowcut" in repr(what[0]) else real(*what),
    )
    after = [key_of(experiment) for experiment in both]
    assert after[0] != before[0]
    assert after[1] == before[1]
