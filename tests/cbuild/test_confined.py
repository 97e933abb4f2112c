# SPDX-License-Identifier: Apache-2.0
"""What a compiler can do to the machine: nothing but to write its scratch folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.cbuild import confined
from tailrace.cbuild.confined import ResourceLimits
from tailrace.cbuild.errors import BuildError

ROOT = Path(__file__).parents[2]
# Tries what no compiler may; says what went well.
TRIES = """
import json, os, socket, sys
address, outside, secret = sys.argv[1], sys.argv[2], sys.argv[3]
done = []
def attempt(name, what):
    try:
        what()
        done.append(name)
    except OSError:
        pass
host, port = address.rsplit(":", 1)
attempt("tcp", lambda: socket.create_connection((host, int(port)), 5))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (host, int(port))))
attempt("write", lambda: open(outside + "/new", "w"))
attempt("overwrite", lambda: open(secret, "r+"))
attempt("mkdir", lambda: os.mkdir(outside + "/folder"))
attempt("read", lambda: open(secret).read())
attempt("shadow", lambda: open("/etc/shadow").read())
escaped = "/tmp/tailrace-escaped-%d" % os.getpid()
attempt("tmp", lambda: (open(escaped, "x"), os.unlink(escaped)))
attempt("remove", lambda: os.unlink(secret))
attempt("scratch", lambda: open(os.environ["TMPDIR"] + "/mine", "w"))
attempt("header", lambda: open("/usr/include/stdio.h").read())
print(json.dumps(done))
"""


def scratch_of(tmp_path: Path) -> Path:
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    return scratch


def run(tmp_path: Path, *command: str, limits: ResourceLimits = confined.LIMITS) -> confined.CommandOutcome:
    program = Path(command[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confined, "LIMITS", limits)
        return confined.run(command, scratch_of(tmp_path), confined.readable(program))


def what_went_well(tmp_path: Path) -> tuple[set[str], tuple[str, ...]]:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        arguments = (address, str(outside), str(outside / "secret"))
        outcome = run(tmp_path, sys.executable, "-I", "-S", "-c", TRIES, *arguments)
    assert 0 == outcome.status, outcome.output
    return set(json.loads(outcome.output)), outcome.active


def test_a_compiler_has_neither_network_nor_files(tmp_path: Path) -> None:
    done, active = what_went_well(tmp_path)
    assert "scratch" in done
    landlock = any("Landlock" in word for word in active)
    namespace = any("namespace" in word for word in active)
    if namespace:
        assert not done & {"tcp", "udp"}
    if landlock:
        assert not done & {"write", "overwrite", "remove", "mkdir", "read", "shadow", "tmp"}
        assert "secret" == (tmp_path / "outside" / "secret").read_text()
        assert [tmp_path / "outside" / "secret"] == list((tmp_path / "outside").iterdir())
    if not (landlock and namespace):
        pytest.skip(f"this machine confines by {', '.join(active)} only")


def test_confinement_can_be_switched_off_and_only_with_its_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(confined.VARIABLE, "off")
    done, active = what_went_well(tmp_path)
    assert {"tcp", "write", "read"} <= done
    assert ("resource limits",) == active
    monkeypatch.setenv(confined.VARIABLE, "perhaps")
    with pytest.raises(BuildError, match="TAILRACE_SANDBOX is 'perhaps', expected on or off"):
        confined.run(["/bin/true"], tmp_path / "scratch", [])


def test_a_compiler_sees_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "CPATH",
        "C_INCLUDE_PATH",
        "LIBRARY_PATH",
        "LD_LIBRARY_PATH",
        "GCC_EXEC_PREFIX",
        "COMPILER_PATH",
    ):
        monkeypatch.setenv(name, "/evil")
    monkeypatch.setenv("SECRET_TOKEN", "evil")
    monkeypatch.setenv("PATH", f"evil:{os.environ['PATH']}:")
    outcome = run(tmp_path, "/usr/bin/env")
    names = {line.partition("=")[0] for line in outcome.output.splitlines()}
    assert {"PATH", "LC_ALL", "TMPDIR", "HOME", "CCACHE_DISABLE"} == names
    assert "evil" not in outcome.output


def processes_of(word: str) -> list[str]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                pids.append(path.parent.name)
        except OSError:
            pass
    return pids


def test_a_run_ends_in_time_with_all_its_children(tmp_path: Path) -> None:
    word = f"4242{os.getpid()}"
    command = f"sleep {word} & (sleep {word} &) ; echo said; sleep {word}"
    outcome = run(tmp_path, "/bin/sh", "-c", command, limits=ResourceLimits(time_s=1.0))
    assert (True, "said\n") == (outcome.timed_out, outcome.output)
    assert [] == processes_of(word)


def test_children_that_outlive_the_command_are_ended(tmp_path: Path) -> None:
    word = f"4343{os.getpid()}"
    assert 0 == run(tmp_path, "/bin/sh", "-c", f"sleep {word} &").status
    assert [] == processes_of(word)


@pytest.mark.parametrize(
    ("command", "limits"),
    [
        ("dd if=/dev/zero of=big bs=1M count=9", ResourceLimits(file_mib=1)),
        ("while :; do :; done", ResourceLimits(cpu_s=1)),
        (
            "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x} | grep -q 300000000",
            ResourceLimits(memory_mib=64),
        ),
    ],
    ids=["file", "cpu", "memory"],
)
def test_a_run_has_limits(command: str, limits: ResourceLimits, tmp_path: Path) -> None:
    outcome = run(tmp_path, "/bin/sh", "-c", command, limits=limits)
    assert outcome.status != 0 and not outcome.timed_out
    assert sum(path.stat().st_size for path in (tmp_path / "scratch").iterdir()) <= 1 << 20


def test_what_is_said_is_bounded_and_stdin_is_empty(tmp_path: Path) -> None:
    outcome = run(tmp_path, "/bin/sh", "-c", "cat; head -c 9000000 /dev/zero | tr '\\0' x; exit 3")
    assert 3 == outcome.status
    assert 65536 == len(outcome.output)


def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    with pytest.raises(BuildError, match="text cannot be run: Permission denied"):
        run(tmp_path, str(tmp_path / "text"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_ordinary_users_are_confined_too(tmp_path: Path) -> None:
    """With a user namespace around the network's where the machine allows that; files keep their owner."""
    supervisor = Path(confined.__file__).with_name("supervisor.py")
    scratch = scratch_of(tmp_path)
    # pytest's folders are for their owner alone
    for folder in [scratch, tmp_path, *(above for above in tmp_path.parents if "pytest" in str(above))]:
        folder.chmod(0o755)
    os.chown(scratch, 65534, 65534)
    text = supervisor.read_text()
    job = {
        "argv": ["/bin/sh", "-c", "echo x > mine; echo x > ../other; id -u"],
        "cwd": str(scratch),
        "scratch": str(scratch),
        "env": {"PATH": "/usr/bin:/bin"},
        "read": ["/usr", "/bin", "/lib", "/lib64"],
        "devices": ["/dev/null"],
        "confine": True,
        "cpu_s": 60,
        "memory_mib": 4096,
        "file_mib": 10,
    }
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip("no Python that every user can run")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    process = subprocess.Popen(
        [*user, python, "-I", "-S", "-c", text, json.dumps(job)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        outcome = json.loads(process.stdout.read())
        assert process.stderr.read().endswith(b"65534\n")
    assert (0, None) == (outcome["status"], outcome["failed"])
    assert 65534 == (scratch / "mine").stat().st_uid
    assert not (tmp_path / "other").exists()
