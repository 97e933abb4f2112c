# SPDX-License-Identifier: Apache-2.0
"""The intended state of a switch."""

from __future__ import annotations

import msgspec

from tailrace.p4rt.entities import P4Entity


class SwitchIntent(msgspec.Struct, frozen=True):
    """The program that a switch should run, and the immutable entities that it should have, in the order of
    writing.

    Configuration is given as default actions of tables without a key.
    """

    switch: str
    program: str
    entities: tuple[P4Entity, ...]
