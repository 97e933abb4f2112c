# SPDX-License-Identifier: Apache-2.0
"""The words of the P4 sources that say what kind a frame is, so that a test over all kinds misses no new one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

COMMON = Path(__file__).parents[2] / "p4src" / "common"
_CONSTANT = re.compile(r"^const\s+bit<\d+>\s+(\w+)\s*=\s*(0x[0-9A-Fa-f]+|\d+);", re.MULTILINE)
_ENUM = re.compile(r"^enum\s+bit<\d+>\s+(\w+)\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r"(\w+)\s*=\s*(0[xb][0-9A-Fa-f]+|\d+)\s*(?:,|$|//)", re.MULTILINE)


@cache
def _text() -> str:
    return "\n".join((COMMON / name).read_text("utf-8") for name in ("headers.p4", "types.p4"))


def constants(prefix: str) -> Iterator[tuple[str, int]]:
    """The constants whose name begins so, such as `UDP_`."""
    for name, value in _CONSTANT.findall(_text()):
        if name.startswith(prefix):
            yield name, int(value, 0)


def members(enum: str) -> dict[str, int]:
    """The members of an enum."""
    for name, body in _ENUM.findall(_text()):
        if name == enum:
            return {member: int(value, 0) for member, value in _MEMBER.findall(body)}
    raise KeyError(enum)
