# SPDX-License-Identifier: Apache-2.0
"""A cache of parsed topologies and schemes, since many experiments share their specs."""

from __future__ import annotations

from functools import lru_cache

from tailrace.schemes.base import SchemeConfig
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import Spec, parse
from tailrace.spec.spec_string import is_file
from tailrace.topology import Topology, parse_topology

_CACHE_ENTRIES = 64


def topology_of(text: str | Spec) -> Topology:
    """The topology that a spec describes; a file is read again each time, since it may have changed.

    Raises:
        SpecError: the spec is invalid.
    """
    spec = parse(text, "topology")
    return parse_topology(spec) if is_file(spec.name) else _generated(str(spec))


@lru_cache(maxsize=_CACHE_ENTRIES)
def _generated(spec: str) -> Topology:
    return parse_topology(spec)


def scheme_of(text: str | Spec) -> SchemeConfig:
    """The scheme that a spec describes.

    Raises:
        SpecError: the spec is invalid.
    """
    return _scheme(str(text))


@lru_cache(maxsize=_CACHE_ENTRIES)
def _scheme(spec: str) -> SchemeConfig:
    return parse_scheme(spec)
