# SPDX-License-Identifier: Apache-2.0
"""Emulated RDMA NICs of hosts: packets, transports, the choice of paths, Flowcut, and a real-time driver.

Everything except `hosts.driver` and `hosts.compiled` is pure: no I/O, no clock, no global random numbers.
Time is an argument in ns. The caller, which emulates the link, passes arriving packets to a
`hosts.nic.nic.Nic` and asks the NIC for packets to send.
"""

from __future__ import annotations

from tailrace.hosts import compiled

_compiled_set = compiled.find()
IMPLEMENTATION = compiled.INTERPRETED if _compiled_set is None else compiled.COMPILED
if _compiled_set is not None:
    # the modules, and the shared library that all of them use
    __path__[:0] = [str(_compiled_set / "tailrace" / "hosts"), str(_compiled_set)]
