# SPDX-License-Identifier: Apache-2.0
"""A sandbox that the kernel cleans up: a run has separate network, mount and PID namespaces.

    supervisor (caller's namespaces)   forwards signals, waits, removes the run folder
      `- harness = PID 1 inside        Mininet, switches, controller, hosts: all its descendants

When PID 1 of a PID namespace ends for any reason, the kernel kills all other processes in the namespace. With
the last process, the network namespaces and all their interfaces disappear. So no process or interface can
outlive a run, none is ever looked up by name, and several runs can share a machine. If the supervisor is
killed, the kernel sends the harness SIGTERM (PR_SET_PDEATHSIG), and the harness ends in order.

Only files can remain. They are in one folder with a ledger: a file with the PID and start time of the
supervisor. Each start removes the folders of supervisors that no longer exist.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fabric_report import FabricError, InputError

from tailrace.controller.runfile import RUN_FOLDER

LEDGER = "ledger.json"
GRACE_S = 20.0
"""How long the harness may take to end after it was asked to."""

NIC_PORTS = (4791, 4793, 4794)
"""UDP ports that the hosts' NICs use: RoCEv2, and the NIC-only Flowcut's data and ACKs."""

TUTORIAL_PORTS = range(50051, 51075)
"""TCP ports at which switches serve P4Runtime, as with the p4lang tutorials' tool; no client gets one."""

_NEW_MOUNTS, _NEW_PIDS, _NEW_NET = 0x00020000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
_PR_SET_PDEATHSIG = 1
_SI_KERNEL = 0x80
_IDLE_S = 3600.0
_MAX_FOLDER_BYTES = 80
"""The path of a socket has at most 107 bytes; this leaves room for the name of a switch."""

_ASKED_TO_END = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_WAITED_FOR = _ASKED_TO_END | {signal.SIGCHLD}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise InputError(f"cannot {what}: {os.strerror(ctypes.get_errno())}; root privileges are needed")


def start_time(pid: int) -> int | None:
    """When process `pid` started, in clock ticks since boot: with the PID, it identifies a process uniquely.

    None: there is no such process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def make_run_dir() -> Path:
    """A new folder for sockets and job files, mode 0700, with the ledger in it.

    Raises:
        InputError: its path would be too long.
    """
    folder = Path(tempfile.mkdtemp(prefix=RUN_FOLDER))
    if len(os.fsencode(folder)) > _MAX_FOLDER_BYTES:
        folder.rmdir()
        raise InputError(f"{folder.parent}: too long a path for sockets in it; set TMPDIR to a shorter one")
    ledger = {"pid": os.getpid(), "start_ticks": start_time(os.getpid())}
    (folder / LEDGER).write_text(json.dumps(ledger))
    return folder


def note_run_file(folder: Path, run_file: Path) -> None:
    """Adds the run file (controller.runfile) to the ledger, so that cleaning up removes it, too."""
    ledger = json.loads((folder / LEDGER).read_text())
    (folder / LEDGER).write_text(json.dumps({**ledger, "run_file": str(run_file)}))


def remove_run_dir(folder: Path) -> None:
    """Removes a run's folder, and its run file if the file still describes this run."""
    with suppress(OSError, ValueError, KeyError):
        run_file = Path(json.loads((folder / LEDGER).read_text())["run_file"])
        if str(folder) in run_file.read_text():
            run_file.unlink()
            # fails if the folder has other files
            run_file.parent.rmdir()
    shutil.rmtree(folder, ignore_errors=True)


def remove_stale() -> list[Path]:
    """Removes leftovers of runs whose supervisor and harness were both killed; returns removed folders."""
    gone = []
    for ledger in Path(tempfile.gettempdir()).glob(f"{RUN_FOLDER}*/{LEDGER}"):
        with suppress(OSError, ValueError, KeyError):
            # in a folder of this user, no other user can have created the file, nor replace it meanwhile
            folder = ledger.parent.lstat()
            if folder.st_uid != os.getuid() or not stat.S_ISDIR(folder.st_mode):
                continue
            entry = json.loads(ledger.read_text())
            if start_time(entry["pid"]) != entry["start_ticks"]:
                remove_run_dir(ledger.parent)
                gone.append(ledger.parent)
    return gone


def run_sandboxed(body: Callable[[], int], folder: Path) -> int:
    """Runs `body` as the first process of new namespaces.

    It returns twice: in the harness what `body` returns or raises, in the supervisor the exit code of the
    harness. Both processes then end through the caller.

    Args:
        body: returns an exit code; a request to end raises KeyboardInterrupt or SystemExit in it.
        folder: the run's folder, removed in the end.

    Raises:
        InputError: no right to make namespaces.
        FabricError: the harness was killed.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    read_end, write_end = os.pipe()  # the supervisor keeps the write end open until it ends
    try:
        _check(_libc.unshare(_NEW_PIDS), "make a PID namespace")
        child = os.fork()
        if child == 0:
            os.close(write_end)
            _enter(read_end)
            return body()
        status = _supervise(child)
    finally:
        remove_run_dir(folder)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        raise FabricError(f"the run was killed by signal {number} ({signal.strsignal(number)})")
    return os.waitstatus_to_exitcode(status)


def _supervise(child: int) -> int:
    """Waits for the harness and passes requests to end on to it; returns its wait status."""
    grace: float | None = None
    while True:
        info = signal.sigtimedwait(_WAITED_FOR, _IDLE_S if grace is None else grace)
        if info is None and grace is not None:
            os.kill(child, signal.SIGKILL)
        elif info is not None and info.si_signo != signal.SIGCHLD:
            # a signal of the terminal has reached the harness already: it is in the same process group
            if info.si_code != _SI_KERNEL:
                os.kill(child, info.si_signo)
            # Mininet's prompt goes on after an interrupt
            if info.si_signo != signal.SIGINT:
                grace = GRACE_S
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            return status


def _enter(supervisor_pipe: int) -> None:
    """Prepares the first process of the new PID namespace; the pipe closes when the supervisor ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # if the supervisor ended before this call, no signal is sent, but its end of the pipe is closed
    if select.select([supervisor_pipe], [], [], 0)[0]:
        raise FabricError("the supervisor was killed")
    for number in _ASKED_TO_END:
        signal.signal(number, _end)
    _prepare()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED_FOR)


def _end(number: int, _frame: object) -> None:
    """Handles a request to end; ignores further requests, which would disturb the clean-up."""
    for other in _ASKED_TO_END:
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _prepare() -> None:
    """Makes mount and network namespaces, mounts their /proc and /sys, sets loopback up and IPv6 off, and
    reserves ports.
    """
    _check(_libc.unshare(_NEW_MOUNTS | _NEW_NET), "make a network namespace")
    _check(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "make the mounts private")
    for name, where in ((b"proc", b"/proc"), (b"sysfs", b"/sys")):
        _check(
            _libc.mount(name, where, name, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None),
            f"mount {where.decode()}",
        )
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():
            setting.write_text("1")
    reserved = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")
    reserved.write_text(f"{TUTORIAL_PORTS.start}-{TUTORIAL_PORTS.stop - 1}")
    subprocess.run(["ip", "link", "set", "dev", "lo", "up"], check=True)


# ---- namespaces of other processes ----


def path_of(pid: int) -> str:
    """The path of the file that represents the network namespace of a process."""
    return f"/proc/{pid}/ns/net"


def _enter_net(descriptor: int) -> None:
    if _libc.setns(descriptor, _NEW_NET) != 0:
        raise FabricError(f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")


@contextmanager
def inside(pid: int) -> Iterator[None]:
    """Moves this thread into the network namespace of process `pid` during a `with` block."""
    with Path("/proc/thread-self/ns/net").open("rb") as previous, Path(path_of(pid)).open("rb") as entered:
        _enter_net(entered.fileno())
        try:
            yield
        finally:
            _enter_net(previous.fileno())


def claim_nic_ports(pid: int) -> list[socket.socket]:
    """Binds the NICs' UDP ports in a host's kernel stack; packets that arrive there are never read.

    The NIC uses a packet socket beside this stack. Without these sockets the stack would answer the NIC's
    packets with ICMP errors.
    """
    claimed = []
    with inside(pid):
        for port in NIC_PORTS:
            probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
            probe.bind(("0.0.0.0", port))  # noqa: S104 - all addresses of that host
            claimed.append(probe)
    return claimed
