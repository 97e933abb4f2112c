# SPDX-License-Identifier: Apache-2.0
"""Registries of the names in specs: what the package registers is sound, as what plug-ins register is."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.experiments.faults.parse import FAULTS
from tailrace.experiments.workloads.workload import WORKLOADS
from tailrace.hosts.options.transports import TRANSPORTS
from tailrace.schemes.registry import SCHEMES
from tailrace.spec.registry import Registry
from tailrace.topology.parse import FAMILIES


@pytest.mark.parametrize("registry", [SCHEMES, TRANSPORTS, FAULTS, WORKLOADS, FAMILIES])
def test_structs_of_the_package_have_their_methods_and_no_key_twice(registry: Registry[Any]) -> None:
    """Plug-ins' are checked when they are registered; ours only here, as that takes time in each run."""
    assert list(registry)
    for entry in registry:
        registry.check(entry.name, entry.struct)
