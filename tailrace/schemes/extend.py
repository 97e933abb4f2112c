# SPDX-License-Identifier: Apache-2.0
"""What a file from outside needs that adds a scheme; examples/two_choices is one.

A folder holds NAME.py, which registers the scheme, and in `build/` the program's compiled output, unless the
scheme runs one of ours. A scheme that is in NICs alone runs a program of ours and says in `nic` what they do;
hosts.extend has what that is made of.
"""

from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from tailrace.hosts.options.nic import NicConfig, SteeringConfig
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
