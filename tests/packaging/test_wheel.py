# SPDX-License-Identifier: Apache-2.0
"""The wheel by itself: built from a copy, installed into a new environment outside the checkout, and used there.

As whoever runs the tests, and where that is root, also as a user who may write nothing of what is installed.
What it depends on comes from the package index, as for every user.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import tomli

from tests.long import ALL

ROOT = Path(__file__).resolve().parents[2]
TAKEN = (
    "tailrace",
    "controller",
    "mininet",
    "p4src",
    "docs/labs",
    "pyproject.toml",
    "setup.py",
    "scripts",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
)
LINKS = ("controller", "mininet", "p4src", "labs/sheets")
NOBODY = 65534
TIMEOUT_S = 600.0
VERSION = "tailrace/version.txt"
BUILD = "import sys, setuptools.build_meta as m; print(getattr(m, sys.argv[1])(sys.argv[2]))"
PAPER = "flowcut_table3"
"""Of the papers' figures and tables the one that takes least."""


@dataclass(frozen=True)
class Built:
    """An sdist, the wheel that is built of it, and the one that is built of the checkout."""

    sdist: Path
    wheel: Path
    direct: Path


@dataclass(frozen=True)
class Place:
    """An environment with the wheel, the folder that its user may write, and that user; None: who tests."""

    bin: Path
    work: Path
    user: int | None

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A program of the environment; nothing of this process's environment reaches it but the path."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.work), "TMPDIR": str(self.work)}
        return subprocess.Popen(
            [str(self.bin / words[0]), *words[1:]],
            cwd=self.work,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )

    def run(self, *words: str) -> str:
        """What it shows; it must end well."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        assert process.returncode == 0, err
        assert "Traceback" not in err
        return out


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that every user may look into, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="tailrace-wheel-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def built(folder: Path) -> Built:
    copy = folder / "copy"
    copy.mkdir()
    for name in TAKEN:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, copy)
    sdist = make("build_sdist", copy, folder / "sdist")
    (folder / "unpacked").mkdir()
    subprocess.run(["tar", "-xf", sdist, "-C", folder / "unpacked"], check=True)
    (unpacked,) = (folder / "unpacked").iterdir()
    return Built(
        sdist,
        make("build_wheel", unpacked, folder / "wheel"),
        make("build_wheel", copy, folder / "direct"),
    )


def make(what: str, source: Path, target: Path, **environment: str) -> Path:
    """What setuptools builds of a folder, with additional variables of the environment."""
    target.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, what, str(target)],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


def content(wheel: Path) -> dict[str, bytes]:
    """Every file of a wheel, without those in which it speaks of itself."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        return {name: archive.read(name) for name in names - {VERSION}}


def ours() -> Mapping[str, bytes]:
    """Every file of the package, those behind its links, too."""
    tops = [ROOT / "tailrace", *(ROOT / "tailrace" / name for name in LINKS)]
    files = {path for top in tops for path in top.rglob("*") if path.is_file()}
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in files
        if "__pycache__" not in path.parts and path != ROOT / VERSION
    }


def test_both_wheels_hold_the_package_and_nothing_else(built: Built) -> None:
    """Sources of C and P4, compiled P4, scripts, files and pages: all that is in the folder `tailrace`."""
    contents, expected = content(built.wheel), ours()
    assert set(contents) == set(expected)
    assert contents == expected == content(built.direct)
    assert {"tailrace/p4src/build/ecmp.json", "tailrace/mininet/run_fabric.py"} <= set(contents)


def prepared() -> str:
    """The version that pyproject.toml has."""
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    version: str = project["tool"]["setuptools_scm"]["fallback_version"]
    return version


def test_the_version_is_in_sdists_and_wheels(built: Built) -> None:
    """A tree without git has that of pyproject.toml."""
    version = prepared()
    assert built.sdist.name == f"tailrace-{version}.tar.gz"
    for wheel in (built.wheel, built.direct):
        assert wheel.name == f"tailrace-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel) as archive:
            assert archive.read(VERSION).decode() == version


def test_the_version_in_a_checkout(tmp_path: Path) -> None:
    """Without tags it is that of pyproject.toml and a number of commits, at a tag the tag's."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def git(*words: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, timeout=TIMEOUT_S)

    def version() -> str:
        command = [sys.executable, "-m", "setuptools_scm"]
        return subprocess.check_output(command, cwd=tmp_path, text=True, timeout=TIMEOUT_S).strip()

    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message=first")):
        git(*words)
    assert version().startswith(f"{prepared()}.post1.dev1+g")
    git("tag", "v7.8.9")
    assert version() == "7.8.9"


@pytest.fixture(scope="module")
def environment(folder: Path, built: Built) -> Path:
    """The programs of a new environment."""
    return install(built.wheel, folder / "venv", interpreter())


def install(wheel: Path, venv: Path, python: str) -> Path:
    """The programs of a new environment with a wheel."""
    subprocess.run([python, "-m", "venv", venv], check=True, timeout=TIMEOUT_S)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return venv / "bin"


def interpreter() -> str:
    """The Python of the tests, or Debian's if that is in a folder that an ordinary user may not enter."""
    base = getattr(sys, "_base_executable", sys.executable)
    debian = "/usr/bin/python3"
    return debian if os.geteuid() == 0 and not usable(base) and usable(debian) else base


def usable(python: str) -> bool:
    """Whether an ordinary user can make an environment with an interpreter."""
    code = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))"
    try:
        done = subprocess.run([python, "-c", code], user=NOBODY, group=NOBODY, extra_groups=[], check=False)
    except OSError:
        return False
    return done.returncode == 0


@pytest.fixture(params=["ordinary user", *(["who tests"] if ALL or os.geteuid() != 0 else [])])
def place(request: pytest.FixtureRequest, folder: Path, environment: Path) -> Place:
    user = NOBODY if request.param == "ordinary user" else None
    work = folder / f"work-{user}"
    work.mkdir(mode=0o700)
    if user is not None:
        if os.geteuid() != 0:
            pytest.skip("who tests is an ordinary user")
        if not usable(str(environment / "python")):
            pytest.skip("no interpreter that an ordinary user may run")
        os.chown(work, user, user)
    return Place(environment, work, user)


def test_it_works_outside_the_checkout(place: Place, built: Built) -> None:
    """Runs, comparisons, a table of a paper, the page, the switch; nothing is written where it is installed."""
    site = place.bin.parent / "lib"
    before = {path for path in site.rglob("*") if "__pycache__" not in path.parts}
    assert Path(
        place.run("python", "-c", "import tailrace; print(tailrace.__file__)").strip()
    ).is_relative_to(site)
    assert place.run("tailrace", "--version").split()[1] in built.wheel.name
    short = ("--target", "virtual", "--topology", "leaf-spine", "--workload", "permutation:size=16KiB")
    place.run("tailrace", "run", "--scheme", "ecmp", *short, "--out", "run")
    assert (place.work / "run" / "flows.parquet").stat().st_size > 0
    place.run("tailrace", "compare", "--scheme", "ecmp,flowcut", *short, "--out", "compared")
    assert (place.work / "compared" / "figure.png").exists()
    place.run("tailrace", "paper", PAPER, "--scale", "small", "--out", "paper")
    for folder in ("compared", "paper"):
        place.run("tailrace", "report", folder, "--out", f"{folder}.html")
        assert "</html>" in (place.work / f"{folder}.html").read_text("utf-8")
    the_switch_serves(place)
    after = {path for path in site.rglob("*") if "__pycache__" not in path.parts}
    assert after == before


def the_switch_serves(place: Place) -> None:
    """It compiles a program of the package, answers at its port, and ends when it is told to."""
    where = "from tailrace.cbuild.artifacts import P4_BUILD; print(P4_BUILD / 'ecmp.json')"
    program = place.run("python", "-c", where).strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    switch = place.start("tailrace_switch_grpc", program, "--grpc-server-addr", f"127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not answers(port):
            assert switch.poll() is None, switch.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        switch.send_signal(signal.SIGTERM)
        _, err = switch.communicate(timeout=TIMEOUT_S)
        assert switch.returncode == 0, err
    finally:
        switch.kill()


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


SCHEMES = (
    *("ecmp", "letflow:hf2t=99", "presto", "drill", "hermes", "spray", "spritz:variant=scout"),
    *(f"flowcut:variant={variant}" for variant in ("full", "ingress", "nic")),
    *(f"rlb:variant={variant}" for variant in ("presto", "letflow", "drill", "hermes")),
)
ON_DRAGONFLIES = ("ugal-l", "flowcut:path=ugal-l")
"""Together with SCHEMES, every program of p4src."""


@pytest.mark.long
def test_a_wheel_with_compiled_code_needs_no_compiler(
    folder: Path, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every program of p4src runs, with compiled NICs; a program of the user's is refused in one line."""
    (unpacked,) = (folder / "unpacked").iterdir()
    wheel = make("build_wheel", unpacked, folder / "binary", TAILRACE_BINARIES="1")
    assert wheel.stem.endswith(f"-linux_{os.uname().machine}")
    work = folder / "work-binary"
    work.mkdir()
    place = Place(install(wheel, folder / "venv-binary", sys.executable), work, None)
    monkeypatch.setenv("PATH", str(place.bin))
    short = ("--target", "virtual", "--workload", "permutation:size=4KiB", "--out", "run")
    for topology, schemes in (("leaf-spine", SCHEMES), ("dragonfly:p=1,a=2,h=1", ON_DRAGONFLIES)):
        for scheme in schemes:
            place.run("tailrace", "run", "--scheme", scheme, "--topology", topology, *short)
            summary = json.loads((work / "run" / "summary.json").read_text("utf-8"))
            assert summary["nics"] == "compiled"
    place.run("tailrace", "trace", "--run", "run", "--flow", "1", "--psn", "1")
    program = str(ROOT / "tests" / "programs" / "build" / "action_profiles.json")
    ping = ("--target", "virtual", "--topology", "leaf-spine", "--workload", "ping")
    for command in (("tailrace_switch_grpc", program), ("tailrace", "run", "--program", program, *ping)):
        process = place.start(*command)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode in (1, 2)
        (line,) = (each for each in err.splitlines() if each.startswith(f"{command[0]}: "))
        assert line.endswith("no C compiler: cc is not on PATH (Debian, Ubuntu: install gcc and libc6-dev)")
