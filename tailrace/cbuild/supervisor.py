# SPDX-License-Identifier: Apache-2.0
"""Runs one command confined: it removes every right that the kernel of this machine can take away.

    python -I -S -B supervisor.py JOB       JOB is JSON; writes a report to stdout as JSON,
                                            and the command's output to stderr

`cbuild.confined` runs this script. When stdin closes, because the caller has given up or died, it kills the
command and its process group and removes the scratch folder. It is a separate process because a process with
threads must not do this work between fork and exec. It imports only the standard library.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
from contextlib import suppress
from typing import Any

_MIB = 1 << 20
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
# Landlock's system calls have the same numbers on every architecture
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READ = _EXECUTE | _READ_FILE | _READ_DIR
# all rights to files and folders, by version of Landlock
_KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
# rights to bind and connect TCP ports; scopes: abstract Unix sockets and signals
_TCP = 3
_SCOPES = 3

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _call(number: int, *arguments: Any) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def _no_network() -> str | None:
    """Enters a network namespace without interfaces; without root, inside a new user namespace.

    Returns what it entered; None: the kernel allows neither.
    """
    if _libc.unshare(_NEW_NET) == 0:
        return "network namespace"
    # a child process tries this first: a process whose user is only partly mapped can create no files
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _enter_namespaces() else 1)
    if os.waitpid(pid, 0)[1] == 0 and _enter_namespaces():
        return "user and network namespace"
    return None


def _enter_namespaces() -> bool:
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_NEW_USER | _NEW_NET) != 0:
        return False
    # the user and group ids stay the same inside, so that files keep their owner
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    try:
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(text)
    except OSError:
        return False
    return True


def _landlock(write: list[str], devices: list[str], read: list[str]) -> str | None:
    """Restricts access to files with Landlock; returns its version, None: the kernel has no Landlock.

    Allows everything in `write`, reading and writing in `devices`, reading and executing in `read`.
    """
    version = _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        return None
    known = _KNOWN[min(version, max(_KNOWN))]
    ruleset = _Ruleset(known, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    # older kernels accept only the first fields of the structure
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _call(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if rules < 0:
        return None
    for paths, rights in ((write, known), (devices, _READ_FILE | _WRITE_FILE | _IOCTL), (read, _READ)):
        for path in paths:
            _allow(rules, path, rights & known)
    if _call(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0)) != 0:
        return None
    os.close(rules)
    return f"Landlock {version}"


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112
        rights &= _FILE_RIGHTS
    beneath = _Beneath(rights, fd)
    kind, no_flags = ctypes.c_int(_PATH_BENEATH), ctypes.c_uint32(0)
    _call(_ADD_RULE, ctypes.c_int(rules), kind, ctypes.byref(beneath), no_flags)
    os.close(fd)


def _limit(job: dict[str, Any]) -> None:
    for kind, wanted in (
        (resource.RLIMIT_CPU, job["cpu_s"]),
        (resource.RLIMIT_AS, job["memory_mib"] * _MIB),
        (resource.RLIMIT_FSIZE, job["file_mib"] * _MIB),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))


def _confine(job: dict[str, Any]) -> list[str]:
    """Gives up rights; lists the mechanisms in force. A mechanism that the kernel lacks is not an error."""
    active = ["resource limits"]
    _limit(job)
    if job["confine"]:
        active += filter(None, [_no_network()])
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        active += filter(None, [_landlock([job["scratch"]], job["devices"], job["read"])])
    return active


def _become(job: dict[str, Any], report: int) -> None:
    """Replaces this process by the command. Writes the mechanisms in force to the descriptor `report`, and
    a line `!REASON` if the command cannot be run.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # Python ignores these signals, and the command would inherit this setting
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.umask(0o077)
    os.chdir(job["cwd"])
    try:
        os.write(report, ("\n".join(_confine(job)) + "\n").encode())
        os.execve(job["argv"][0], job["argv"], job["env"])  # noqa: S606
    except (OSError, ValueError) as error:
        os.write(report, f"!{getattr(error, 'strerror', None) or error}\n".encode())
    os._exit(127)


def main() -> None:
    """Runs the job that the command line gives, and writes the report."""
    job = json.loads(sys.argv[1])
    report, report_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        _become(job, report_out)
    with suppress(OSError):
        os.setpgid(pid, pid)
    ended = os.pidfd_open(pid)
    abandoned = ended not in select.select([0, ended], [], [])[0]
    # the command is not reaped yet, so its process id is still the id of its group
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if abandoned:
        shutil.rmtree(job["scratch"], ignore_errors=True)
        return
    os.close(report_out)
    lines = os.read(report, 4096).decode(errors="replace").splitlines()
    outcome = {
        "status": status,
        "active": [line for line in lines if not line.startswith("!")],
        "failed": next((line[1:] for line in lines if line.startswith("!")), None),
    }
    os.write(1, json.dumps(outcome).encode())


if __name__ == "__main__":
    main()
