# SPDX-License-Identifier: Apache-2.0
"""The virtual machine's scripts, run in a fresh Debian system with stand-ins for p4lang's package repository.

The system is a chroot of mmdebstrap's, with mounts and processes of its own; it takes minutes, so only `make test-all` makes it
(``TAILRACE_CHROOT=1``).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import textwrap
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "provision_root.sh"
TIMEOUT_S = 900
TOOLS = ("mmdebstrap", "dpkg-deb", "dpkg-scanpackages", "gpg", "unshare")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
slow = pytest.mark.skipif(
    os.geteuid() != 0 or os.environ.get("TAILRACE_CHROOT") != "1" or not all(map(shutil.which, TOOLS)),
    reason=f"needs root, TAILRACE_CHROOT=1 and {', '.join(TOOLS)}",
)

# The system's own mounts end with the process that made them.
ENTER = """
root=$1; shift
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
for name in null zero full random urandom; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm"
mount -t tmpfs tmpfs "$root/dev/shm"
mount --bind "$PROJECT" "$root/vagrant"
exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
"""

BROKEN = """#!/bin/sh
echo "simple_switch_grpc: symbol lookup error: undefined symbol: _ZTVN10bm" >&2
exit 127
"""

# Answers one request of HTTP/2 as a P4Runtime server does: version 1.3.0, status 0.
WORKS = r"""#!/usr/bin/python3
import socket, sys, time
host, port = sys.argv[sys.argv.index("--grpc-server-addr") + 1].split(":")
listener = socket.create_server((host, int(port)))
def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
while True:
    connection, _ = listener.accept()
    connection.sendall(frame(4, 0, 0) + frame(4, 1, 0))
    time.sleep(0.3)
    connection.recv(65536)
    message = b"\x0a\x051.3.0"
    connection.sendall(
        frame(1, 4, 1, b"\x88\x0f\x10\x10application/grpc")
        + frame(0, 0, 1, b"\0" + len(message).to_bytes(4, "big") + message)
        + frame(1, 5, 1, b"\0\x0bgrpc-status\x010")
    )
"""


def provision(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT)],
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@needs_root
def test_named_builds_have_to_be_there(tmp_path: Path) -> None:
    """One line, and nothing is installed."""
    for variable, value, expected in (
        ("P4LANG_PREFIX", tmp_path, "contains no simple_switch_grpc"),
        ("P4LANG_PACKAGES", tmp_path, "no .deb file in"),
        ("P4LANG_PACKAGES", tmp_path / "other.deb", "is no file"),
    ):
        done = provision(**{variable: str(value)})
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"provision: {variable}: ")
        assert expected in line


def package(folder: Path, switch: str) -> Path:
    """A p4lang-bmv2 with this text as its switch."""
    tree = folder.parent / f"{folder.name}.tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr" / "bin").mkdir(parents=True)
    fields = {"Package": "p4lang-bmv2", "Version": "1.15.0", "Architecture": "all"}
    fields |= {"Maintainer": "nobody <nobody@example.org>", "Description": "stand-in"}
    (tree / "DEBIAN" / "control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    program = tree / "usr" / "bin" / "simple_switch_grpc"
    program.write_text(switch)
    program.chmod(0o755)
    folder.mkdir(parents=True)
    made = folder / "p4lang-bmv2.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(made)], check=True, capture_output=True)
    return made


def sign(folder: Path, home: Path) -> None:
    """Make a flat repository of a folder with packages, with a key of its own."""

    def run(*command: str) -> bytes:
        env = os.environ | {"GNUPGHOME": str(home)}
        return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True).stdout

    gpg = ("gpg", "--batch", "--passphrase", "")
    if not home.exists():
        home.mkdir(mode=0o700)
        run(*gpg, "--quick-generate-key", "nobody@example.org", "ed25519", "default", "never")
    index = run("dpkg-scanpackages", "-m", ".")
    (folder / "Packages").write_bytes(index)
    (folder / "Release").write_text(f"SHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n")
    run(*gpg, "--armor", "--output", "Release.key", "--export")
    run(*gpg, "--clearsign", "--output", "InRelease", "Release")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web server with the repositories `broken` and `works`; any other is not there."""
    folder = tmp_path_factory.mktemp("site")
    for name, switch in (("broken", BROKEN), ("works", WORKS)):
        package(folder / name, switch)
        sign(folder / name, folder / "gpg")
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Runs a command in a fresh Debian system with the project at /vagrant; returns what it wrote to standard error."""
    root = tmp_path_factory.mktemp("debian") / "root"
    subprocess.run(
        ["mmdebstrap", "--variant=minbase", "bookworm", str(root)],
        check=True,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    (root / "vagrant").mkdir()
    # A proxy of this machine's is one there, too.
    for name in ("apt/apt.conf.d", "ssl/certs"):
        shutil.copytree(
            f"/etc/{name}",
            root / "etc" / name,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("docker*", "20*", "50*"),
        )

    def run(*command: str) -> str:
        done = subprocess.run(
            [
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "bash",
                "-ec",
                ENTER,
                "bash",
                str(root),
                *command,
            ],
            env=os.environ | {"PROJECT": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    yield run
    shutil.rmtree(root)


@slow
def test_repositories_are_tried_in_order(site: str, debian: Callable[..., str]) -> None:
    """One that is not there, one whose switch does not start; then again where none is left, and with a named package."""
    urls = [f"{site}/{name}" for name in ("gone", "broken", "works")]
    said = debian("env", f"P4LANG_URLS={' '.join(urls)}", "bash", "/vagrant/scripts/provision_root.sh")
    assert [line.rpartition(" ")[2] for line in said.splitlines() if "trying" in line] == urls
    assert "returned error: 404" in said
    assert "symbol lookup error" in said
    assert "simple_switch_grpc serves P4Runtime" in said.splitlines()[-1]

    said = debian("env", f"P4LANG_URLS={site}/works", "bash", "/vagrant/scripts/provision_root.sh")
    assert "serves P4Runtime" in said.splitlines()[-1], "a second time"

    said = debian(
        "env", f"P4LANG_URLS={site}/gone {site}/broken", "bash", "/vagrant/scripts/provision_root.sh"
    )
    assert "without BMv2: `make run` uses the native switch" in said.splitlines()[-1]
    debian("bash", "-c", "! command -v simple_switch_grpc && ! ls /etc/apt/sources.list.d/p4lang.list")


@slow
def test_a_build_of_ones_own(debian: Callable[..., str]) -> None:
    """Its programs are linked into the path, and checked as a package's are."""
    script = textwrap.dedent("""
        mkdir -p /opt/own/bin
        echo "$0" >/opt/own/bin/simple_switch_grpc
        chmod +x /opt/own/bin/simple_switch_grpc
        P4LANG_PREFIX=/opt/own bash /vagrant/scripts/provision_root.sh
    """)
    assert "/usr/local/bin/simple_switch_grpc serves P4Runtime" in debian("bash", "-ec", script, WORKS)
