# SPDX-License-Identifier: Apache-2.0
"""What words mean, worked out once: what was checked is planned, and many runs share it."""

from __future__ import annotations

from functools import cache, lru_cache

from tailrace.experiments.workloads.workload import Workload, parse_workload
from tailrace.p4rt import programs
from tailrace.schemes.base import SchemeConfig, resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import Topology, parse_topology
from tailrace.words import parse

_KEPT = 16


def topology_of(words: str) -> Topology:
    """The topology that words describe; one in a file is read anew, for the file may have changed.

    Raises:
        SpecError: they describe none.
    """
    return parse_topology(words) if "." in parse(words, "topology").name else _generated(words)


@lru_cache(maxsize=_KEPT)
def _generated(words: str) -> Topology:
    return parse_topology(words)


@lru_cache(maxsize=_KEPT)
def scheme_of(words: str) -> SchemeConfig:
    """The scheme that words describe.

    Raises:
        SpecError: they describe none.
    """
    return parse_scheme(words)


def workload_of(words: str) -> Workload:
    """The workload that words describe; one with a file is read anew.

    Raises:
        SpecError: they describe none.
    """
    return parse_workload(words) if "." in words else _without_files(words)


@lru_cache(maxsize=_KEPT)
def _without_files(words: str) -> Workload:
    return parse_workload(words)


def program_sha256(scheme: str, topology: str) -> str:
    """The hash of the compiled program that a scheme's switches run in a topology.

    Raises:
        SpecError: words that cannot be used.
        ControllerError: the program is not there.
    """
    in_file = "." in parse(topology, "topology").name
    return (_program_sha256.__wrapped__ if in_file else _program_sha256)(scheme, topology)


@cache
def _program_sha256(scheme: str, topology: str) -> str:
    return programs.load(resolve(scheme_of(scheme), topology_of(topology)).program).sha256
