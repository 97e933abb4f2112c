# SPDX-License-Identifier: Apache-2.0
"""The options that all topologies share: rate and delay of their links."""

from __future__ import annotations

from spec import Options

LINK_KEYS = ("rate", "delay")

DEFAULT_RATE_BPS = 200_000_000_000
DEFAULT_DELAY_NS = 1_000
"""The links of Flowcut §III-B1."""


def links_of(options: Options) -> tuple[int, int]:
    """Rate in bits/s and one-way delay in ns of every link.

    Raises:
        SpecError: no such quantity, or a rate of 0.
    """
    return options.rate_bps("rate", DEFAULT_RATE_BPS), options.time_ns("delay", DEFAULT_DELAY_NS)
