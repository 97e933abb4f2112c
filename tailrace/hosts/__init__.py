# SPDX-License-Identifier: Apache-2.0
"""Hosts that play RDMA NICs: packets, transports, the choice of paths, Flowcut, and a real-time driver.

Everything but `hosts.driver` and `hosts.compiled` is pure: no I/O, no clock, no global random numbers. Time
is an argument in ns, and whoever owns the wire pulls packets out of `hosts.nic.nic.Nic` and hands others in.
"""

from __future__ import annotations

from tailrace.hosts import compiled

_found = compiled.find()
IMPLEMENTATION = compiled.INTERPRETED if _found is None else compiled.COMPILED
if _found is not None:
    __path__.insert(0, str(_found))
