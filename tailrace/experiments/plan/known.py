# SPDX-License-Identifier: Apache-2.0
"""Topologies and schemes of specs that many experiments share, parsed once."""

from __future__ import annotations

from functools import lru_cache

from tailrace.schemes.base import SchemeConfig
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import Spec, parse
from tailrace.topology import Topology, parse_topology

_KEPT = 64


def topology_of(text: str | Spec) -> Topology:
    """The topology that a spec describes; one in a file is read anew, for the file may have changed.

    Raises:
        SpecError: they describe none.
    """
    spec = parse(text, "topology")
    return parse_topology(spec) if "." in spec.name else _generated(str(spec))


@lru_cache(maxsize=_KEPT)
def _generated(spec: str) -> Topology:
    return parse_topology(spec)


def scheme_of(text: str | Spec) -> SchemeConfig:
    """The scheme that a spec describes.

    Raises:
        SpecError: they describe none.
    """
    return _scheme(str(text))


@lru_cache(maxsize=_KEPT)
def _scheme(spec: str) -> SchemeConfig:
    return parse_scheme(spec)
