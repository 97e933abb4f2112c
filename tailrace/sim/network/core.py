# SPDX-License-Identifier: Apache-2.0
"""The typed interface of the network in C (tv_python.c, tv_py_*.c, which describe each method).

Nodes (switches and hosts) and wires (directions of links) are identified by index. A rank is a process that
simulates a part of the network.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.nic import NicPort
from tailrace.codec.numbers import LOCAL_TYPE, ROCE_PORT, SHIM_PORT, Subtype
from tailrace.sim.network.build import extension
from tailrace.sim.network.errors import NetworkError
from tailrace.sim.network.ranks import RankTransport
from tailrace.switch.core.lib import C

NEVER_PS: int = C.TR_NEVER
_COUNT_MASK = 15
"""tv_net.h: the low four bits of a byte in a shim are its number of stamps (timestamps of switches)."""

Sight = tuple[int, int, int, "int | None"]
"""(time_ps, switch, ingress port, psn)"""


Amounts = tuple[int, int]
"""Frames, and bytes of virtual payload (payload of which only the length is simulated)."""

SwitchAccount = tuple[
    int, Amounts, Amounts, Amounts, Amounts, Amounts, Amounts, Amounts, Amounts, Amounts, Amounts
]
"""Counts of the switch core: payload bytes truncated; then in, made (clones, copies and pause frames), out,
dropped, held; then counts of the network: handed to the core, sent to a port without a wire, sent to the CPU
port, dropped by blackhole faults, packet-outs."""

WireAccount = tuple[Amounts, Amounts, Amounts, Amounts, Amounts]
"""Sent, delivered, lost to a link that is down, lost to other faults, under way."""


class Stop(IntEnum):
    """Why `Net.run` has returned (tv_stop of tv_net.h)."""

    REST = 0
    LIMIT = 1
    MARK = 2


RUNNING_WINDOW = 1
"""`Net.running` in a window of several instants; 0: not running; 2: running a window of one instant."""


class Net(Protocol):
    """The type Net of the extension."""

    @property
    def now_ps(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def running(self) -> int: ...
    @property
    def rank_counts(self) -> tuple[int, int, int]: ...

    # assembly, and frames that control calls inject
    def add_switch(self, name: str, handle: int, cpu_port: int, /) -> int: ...
    def add_absent(self, name: str, rank: int, /) -> int: ...
    def add_host(self, name: str, /) -> int: ...
    def add_wire(
        self, source: int, source_port: int, target: int, target_port: int, rate_bps: int, delay_ps: int, /
    ) -> int: ...
    def attach(self, host: int, port: NicPort, /) -> None: ...
    def set_formats(
        self,
        local_type: int,
        skipped: int,
        trimmed: int,
        shims: list[tuple[int, int, int, int, int]],
        bths: list[tuple[int, int]],
        /,
    ) -> None: ...
    def inject(self, switch: int, port: int, frame: bytes, /) -> None: ...
    def settle(self, switch: int, /) -> None: ...
    def to_cpu(self, switch: int, /) -> list[bytes]: ...
    def close(self) -> None: ...

    # running
    def poll(self) -> None: ...
    def run(self, limit_ps: int, stop_at_rest: bool, mark: int, /) -> int: ...
    def at_rest(self) -> bool: ...
    def cut(self, time_ps: int, /) -> None: ...
    def set_now(self, now_ps: int, /) -> None: ...
    def set_ranks(self, transport: RankTransport, rank: int, ranks: int, /) -> None: ...
    def set_stepwise(self, stepwise: bool, /) -> None: ...

    # faults
    def set_rate(self, wire: int, rate_bps: int, /) -> None: ...
    def set_up(self, wire: int, up: bool, /) -> None: ...
    def drop(
        self,
        wire: int,
        threshold: int,
        everything: bool,
        random: int,
        from_ps: int,
        until_ps: int,
        other_types: bool,
        subtypes: int,
        udp_port: int,
        only_data: bool,
        test: Callable[[bytes], bool] | None,
        /,
    ) -> None: ...
    def blackhole(self, switch: int, pairs: bytes, from_ps: int, until_ps: int, /) -> None: ...

    # observing: results are in the order of the fields of the classes in observation.py
    def up(self, wire: int, /) -> bool: ...
    def traffic(self) -> tuple[int, int, int, int, int, int]: ...
    def data(self) -> tuple[int, int, int, int, int]: ...
    def trace(self) -> bytes: ...
    def tap(self, wire: int, function: Callable[[int, int, bytes, int], None], /) -> None: ...
    def log(self, a: int, b: int, wires: list[int], non_ip_wires: list[int], /) -> None: ...
    def logged(self) -> bytes: ...
    def capture(self, path: Path, wires: list[tuple[int, str]], /) -> None: ...
    def record(self, packets: bool, /) -> None: ...
    def recorded(self) -> tuple[bytes, bool]: ...
    def watch(self, src: int, dst: int, /) -> int: ...
    def watched(self, watch: int, /) -> list[Sight]: ...
    def sample(self, period_ps: int, wires: list[int], /) -> None: ...
    def account(self) -> tuple[list[SwitchAccount], list[WireAccount]]: ...
    def samples(self) -> tuple[bytes | None, bytes | None, bytes | None, bytes | None]: ...


@functools.cache
def _module() -> ModuleType:
    module = extension()
    module.set_error(NetworkError)
    return module


def _formats(net: Net) -> None:
    """Sets the header formats in `net`: EtherType, subtypes and offsets, all from the formats of headers."""
    shim, stamp = HeaderLayout("DataShim"), HeaderLayout("Stamp")
    count = shim.span("DataShim.hops", "DataShim.stamps")
    assert shim.mask("DataShim.stamps") == _COUNT_MASK and not shim.shift(count, "DataShim.stamps")
    next_at = shim.span("DataShim.next_type").byte
    # subtype, header length, offset of the number of stamps, length of a stamp, offset of the next type
    shims = [
        (int(Subtype.DATA_SHIM), shim.size_bytes, count.byte, stamp.size_bytes, next_at),
    ]
    for subtype, layer in ((Subtype.DETOUR, "Detour"), (Subtype.PATH_PROBE, "PathProbe")):
        fixed = HeaderLayout(layer)
        next_at = fixed.span(f"{layer}.next_type").byte
        shims.append((int(subtype), fixed.size_bytes, 0, 0, next_at))
    udp, shimmed = HeaderLayout("UDP", "BTH"), HeaderLayout("UDP", "NicShim", "BTH")
    # UDP destination port, and offset of the PSN
    sequences = [(ROCE_PORT, udp.span("BTH.psn").byte), (SHIM_PORT, shimmed.span("BTH.psn").byte)]
    trimmed = 1 << Dscp.TRIMMED | 1 << Dscp.TRIMMED_STEERED
    net.set_formats(LOCAL_TYPE, 1 << Subtype.DETOUR, trimmed, shims, sequences)


def new_net() -> Net:
    """An empty network.

    Raises:
        BuildError: the C part cannot be compiled.
    """
    net = cast(Net, _module().Net())
    _formats(net)
    return net
