# SPDX-License-Identifier: Apache-2.0
"""Scapy layers of all packets that hosts and fabric switches send, one protocol per file.

Importing a module binds its layers, so that Scapy dissects captures down to the payload. The widths of fields
are defined only here; `codec.layout` reads them for the codec in C.
"""
