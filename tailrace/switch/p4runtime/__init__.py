# SPDX-License-Identifier: Apache-2.0
"""P4Runtime 1.5 server of a native switch.

Modules without gRPC implement the protocol: `arbitration` (primary and backup clients), `entities` (a module
per kind of entity; P4Info's objects with their indexes in the program), `device` (one device). `service` is
the gRPC layer.
"""
