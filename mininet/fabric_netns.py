# SPDX-License-Identifier: Apache-2.0
"""Work inside the network namespace of another process."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabric_errors import FabricError

NIC_PORTS = (4791, 4793, 4794)
"""UDP ports that the hosts' NICs speak on: RoCEv2, and the NIC-only Flowcut's data and ACKs."""

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def path_of(pid: int) -> str:
    """The network namespace of a process, as a file that others may open."""
    return f"/proc/{pid}/ns/net"


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise FabricError(f"cannot enter a network namespace: {os.strerror(ctypes.get_errno())}")


@contextmanager
def inside(pid: int) -> Iterator[None]:
    """What this thread opens meanwhile belongs to the network namespace of process `pid`."""
    with Path("/proc/thread-self/ns/net").open("rb") as home, Path(path_of(pid)).open("rb") as there:
        _enter(there.fileno())
        try:
            yield
        finally:
            _enter(home.fileno())


def claim_nic_ports(pid: int) -> list[socket.socket]:
    """Binds the NICs' UDP ports in a host's own stack and lets what arrives there run over.

    The NIC works on a packet socket beside that stack, which would answer its frames with ICMP errors.
    """
    claimed = []
    with inside(pid):
        for port in NIC_PORTS:
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
            one.bind(("0.0.0.0", port))  # noqa: S104 - all addresses of that host
            claimed.append(one)
    return claimed
