# SPDX-License-Identifier: Apache-2.0
"""The switch runs without the lab: its folders are absent, and what only the lab needs cannot be imported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.switch.daemon.test_cli import free_port

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "tests" / "programs" / "build"
ROOMS = ("switch", "spec", "cbuild", "p4rt", "tables")
"""What the switch stands on."""
PACKAGES = ("scapy", "matplotlib", "arro3", "jinja2", "markdown_it", "rich", "argcomplete", "mypy_extensions")
"""What pyproject.toml has for the lab."""

ALONE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

PACKAGES, folder = sys.argv[1].split(","), sys.argv[2]
# an editable install finds our own sources
sys.meta_path = [Absent(), *(finder for finder in sys.meta_path if "editable" not in repr(finder).lower())]
sys.path.insert(0, folder)
"""

IMPORT_ALL = """
import importlib, pkgutil, tailrace.switch
assert tailrace.switch.__file__.startswith(folder), tailrace.switch.__file__
for module in pkgutil.walk_packages(tailrace.switch.__path__, "tailrace.switch."):
    importlib.import_module(module.name)
"""

SERVE = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
from finsy.proto import p4r, p4r_grpc
import grpc
from tailrace.switch.daemon import cli

program, p4info, port = sys.argv[3:]
async def call():
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        await stub.Capabilities(p4r.CapabilitiesRequest(), wait_for_ready=True, timeout=60)
        config = await stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(device_id=1), timeout=60
        )
        print(len(config.config.p4info.tables))

def client():
    import os, signal
    try:
        asyncio.run(call())
    finally:
        os.kill(os.getpid(), signal.SIGTERM)

with ThreadPoolExecutor() as pool:
    done = pool.submit(client)
    status = cli.main(
        [program, "--p4info", p4info, "--device-id", "1", "--grpc-server-addr", f"127.0.0.1:{port}"]
    )
    done.result()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = tmp_path_factory.mktemp("alone") / "tailrace"
    package.mkdir()
    shutil.copy(ROOT / "tailrace" / "__init__.py", package)
    for room in ROOMS:
        shutil.copytree(ROOT / "tailrace" / room, package / room)
    return package.parent


def run(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ALONE + script, ",".join(PACKAGES), str(folder), *arguments],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_every_module_can_be_imported(folder: Path) -> None:
    done = run(folder, IMPORT_ALL)
    assert done.returncode == 0, done.stderr


def test_it_serves_p4runtime(folder: Path) -> None:
    program = BUILD / "basic_l3.json"
    done = run(folder, SERVE, str(program), str(program.with_suffix(".p4info.txtpb")), str(free_port()))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 0
