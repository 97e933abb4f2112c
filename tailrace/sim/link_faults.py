# SPDX-License-Identifier: Apache-2.0
"""Faults of one link or one switch, and when they begin and end."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta


class LinkSlow(msgspec.Struct, frozen=True, tag="link-slow", tag_field="kind"):
    """The link a-b has `factor` times its rate, in both directions, from `at_ns` to `until_ns`.

    Here and below, `until_ns` None means that the fault never ends.
    """

    a: str
    b: str
    factor: Annotated[float, Meta(gt=0, le=1, description="a number above 0 and at most 1")]
    at_ns: int = 0
    until_ns: int | None = None


class LinkDown(msgspec.Struct, frozen=True, tag="link-down", tag_field="kind"):
    """The link a-b carries nothing."""

    a: str
    b: str
    at_ns: int = 0
    until_ns: int | None = None


class Loss(msgspec.Struct, frozen=True, tag="drop", tag_field="kind"):
    """The link a-b loses each frame of a flow (data or acknowledgment) with probability `rate`, in both
    directions or only from a to b (`one_way`). With `only_data` acknowledgments are not lost.
    """

    a: str
    b: str
    rate: float
    at_ns: int = 0
    until_ns: int | None = None
    one_way: bool = False
    only_data: bool = False


class AckLoss(msgspec.Struct, frozen=True, tag="ack-loss", tag_field="kind"):
    """The link a-b loses each Flowcut ACK, of switches or NICs, with probability `rate` (both directions)."""

    a: str
    b: str
    rate: float
    at_ns: int = 0
    until_ns: int | None = None


class Blackhole(msgspec.Struct, frozen=True, tag="blackhole", tag_field="kind"):
    """`switch` silently drops every packet whose IPv4 (source, destination) pair is in `pairs`."""

    switch: str
    pairs: frozenset[tuple[str, str]]
    at_ns: int = 0
    until_ns: int | None = None


class SwitchRestart(msgspec.Struct, frozen=True, tag="switch-restart", tag_field="kind"):
    """`switch` loses all its state at `at_ns`; its links come up again `down_ns` later."""

    switch: str
    at_ns: int
    down_ns: int


LinkFault: TypeAlias = LinkSlow | LinkDown | Loss | AckLoss | Blackhole | SwitchRestart
"""A fault of one link or of one switch."""


def last_change_ns(fault: LinkFault) -> int:
    """When a fault ends, or, if it never ends, when it begins."""
    if isinstance(fault, SwitchRestart):
        return fault.at_ns + fault.down_ns
    return fault.at_ns if fault.until_ns is None else fault.until_ns
