# SPDX-License-Identifier: Apache-2.0
"""Ranges of settings: annotations for fields that are not keys of a spec, and a check of annotated fields."""

from __future__ import annotations

from tailrace.hosts.errors import check_keys
from tailrace.spec import keys

FROM_0 = keys.number("from_0", "0 or more", least=0)
ABOVE_0 = keys.number("above_0", "more than 0", above=0)
SHARE = keys.number("share", "0..1", least=0, most=1)
WEIGHT = keys.number("weight", "more than 0 and at most 1", above=0, most=1)


class RangeChecked:
    """Base of settings whose fields are checked against their ranges."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Raises ConfigError on invalid values."""
        check_keys(self)
