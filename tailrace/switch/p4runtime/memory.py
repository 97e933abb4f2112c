# SPDX-License-Identifier: Apache-2.0
"""Memory accounting: the memory of programs and entities is estimated, and reserved within one limit.

The kernel overcommits memory: allocations do not fail, and the process is killed when it uses the memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.p4rt.status import exhausted
from tailrace.switch.compiler.model import Model

# Bytes of each object in Python and in the switch core, measured on CPython 3.11 and rounded up.
ENTRY = 2048
KEY_BYTE = 8  # for each byte of an entry's key: copies in message and entry, and hash table slots
MEMBER = 1024
COPY = 192  # of an action profile member
GROUP = 1024
GROUP_MEMBER = 384
REPLICA = 512
REPLICATED = 1024  # a multicast group or clone session
SET_MEMBER = 512  # of a parser value set
REFERENCE = 512  # from or to an entry: the tuples, and an item in the index (pins/references.py)

_COUNTER_CELL = 16
_METER_CELL = 128
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def default_limit() -> int:
    """Half of the machine's memory, or of the control group's limit if that is lower, in bytes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        try:
            total = min(total, int(path.read_text("ascii")))
        except (OSError, ValueError):
            continue  # there is no such cgroup controller, or its limit is "max"
    return total // 2


def reference_bytes(references: Iterable[tuple[int, tuple[int, ...], tuple[bytes, ...]]]) -> int:
    """Estimated bytes of references from or to an entry."""
    return sum(REFERENCE + sum(map(len, values)) for _, _, values in references)


def array_bytes(model: Model) -> int:
    """Bytes of a program's counters, meters and registers."""
    return (
        sum(_COUNTER_CELL * counter.size for counter in model.counters)
        + sum(_METER_CELL * meter.size for meter in model.meters)
        + sum(_cell_bytes(register.bits) * register.size for register in model.registers)
    )


def _cell_bytes(bits: int) -> int:
    """Bytes of a register's cell: 1, 2, 4 or 8, or a multiple of 8."""
    return next((size for size in (1, 2, 4, 8) if bits <= 8 * size), (bits + 63) // 64 * 8)


class MemoryBudget:
    """The memory limit of a device, over all its pipelines."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_limit() if limit is None else limit
        self.used = 0

    def check_fits(self, size: int, what: str) -> None:
        """Checks that `size` bytes alone do not exceed the limit.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: the limit is exceeded; the message has size and limit.
        """
        if size > self.limit:
            raise exhausted(f"{what} needs {size} bytes; the limit is {self.limit} (--memory)")


class MemoryAccount:
    """The memory that one pipeline has reserved."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._used = 0
        self._unlimited = False

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Lifts the limit within the context, for rollbacks.

        Other pipelines may have reserved the memory that the batch had freed, so the limit may be exceeded
        afterwards; then all reservations fail until enough is released.
        """
        self._unlimited = True
        try:
            yield
        finally:
            self._unlimited = False

    def reserve(self, size: int, what: str) -> None:
        """Reserves bytes; a negative number releases them.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: fewer bytes are free.
        """
        memory = self._memory
        if size > 0 and memory.used + size > memory.limit and not self._unlimited:
            raise exhausted(
                f"{what} needs {size} more bytes; {memory.used} of {memory.limit} are in use (--memory)"
            )
        memory.used += size
        self._used += size

    @contextmanager
    def reserved(self, size: int, what: str) -> Iterator[None]:
        """Reserves bytes like `reserve`, and releases them if the context ends with an exception."""
        self.reserve(size, what)
        try:
            yield
        except BaseException:
            self.release(size)
            raise

    def reserve_replacement(self, size: int, what: str) -> None:
        """Reserves bytes for an object that will replace another one, whose memory is freed only later.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: these bytes alone exceed the limit.
        """
        self._memory.check_fits(size, what)
        self._memory.used += size
        self._used += size

    def release(self, size: int) -> None:
        """Releases bytes."""
        self.reserve(-size, "")

    def close(self) -> None:
        """Releases all bytes."""
        self.release(self._used)
