# SPDX-License-Identifier: Apache-2.0
"""P4Runtime 1.5 server of a native switch.

Small modules without gRPC hold the protocol: `arbitration` (primary and backup clients), `entities` (a module
a kind, and P4Info joined with the program), `device` (one device). `service` is the gRPC layer on top.
"""
