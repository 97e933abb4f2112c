# SPDX-License-Identifier: Apache-2.0
"""What words mean that many experiments have in common, worked out once."""

from __future__ import annotations

from functools import lru_cache

from tailrace.schemes.base import SchemeConfig
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import Words, parse
from tailrace.topology import Topology, parse_topology

_KEPT = 64


def topology_of(text: str | Words) -> Topology:
    """The topology that words describe; one in a file is read anew, for the file may have changed.

    Raises:
        SpecError: they describe none.
    """
    words = parse(text, "topology")
    return parse_topology(words) if "." in words.name else _generated(str(words))


@lru_cache(maxsize=_KEPT)
def _generated(words: str) -> Topology:
    return parse_topology(words)


def scheme_of(text: str | Words) -> SchemeConfig:
    """The scheme that words describe.

    Raises:
        SpecError: they describe none.
    """
    return _scheme(str(text))


@lru_cache(maxsize=_KEPT)
def _scheme(words: str) -> SchemeConfig:
    return parse_scheme(words)
