# SPDX-License-Identifier: Apache-2.0
"""P4Runtime 1.5 service on top of a native switch.

The protocol is kept in small modules without gRPC: `arbitration` (who is primary), `bytestring`, `schema`
(P4Info checked against the compiled program), one module for each kind of entity, `device` (one device with
all of it). `service` is the thin gRPC layer on top.
"""
