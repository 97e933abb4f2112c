# SPDX-License-Identifier: Apache-2.0
"""The names that a plug-in imports to add a scheme; examples/two_choices is an example.

A plug-in is a folder with NAME.py, which registers the scheme, and in `build/` the compiled P4 program,
unless the scheme uses a program of Tailrace. A scheme that works only in NICs uses such a program, and its
method `nic` returns the configuration of NICs; hosts.extend has the names for that. `fitting` checks that an
action parameter is wide enough for a value.
"""

from tailrace.hosts.options.nic import NicConfig, SteeringConfig
from tailrace.p4rt.entities import P4Entity, P4TableAction, P4TableEntry, P4TableMatch
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.basic import ResolvedBasic, SourcePortPaths
from tailrace.schemes.blocks.entries import (
    common_entries,
    configuration,
    default_action,
    fitting,
    flowlet_config,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan, Resolved, SchemeContext
from tailrace.spec import Spec, SpecError, keys
from tailrace.topology import Topology
from tailrace.topology.timing import base_rtt_ns, bdp_bytes

__all__ = [
    "EntryPlan",
    "IntentError",
    "NicConfig",
    "P4Entity",
    "P4TableAction",
    "P4TableEntry",
    "P4TableMatch",
    "Resolved",
    "ResolvedBasic",
    "SchemeConfig",
    "SchemeContext",
    "SourcePortPaths",
    "Spec",
    "SpecError",
    "SteeringConfig",
    "Topology",
    "base_rtt_ns",
    "bdp_bytes",
    "common_entries",
    "configuration",
    "default_action",
    "fitting",
    "flowlet_config",
    "group_members",
    "keys",
    "port_roles",
    "routes",
    "scheme",
]
