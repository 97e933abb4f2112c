# SPDX-License-Identifier: Apache-2.0
"""Scapy formats of everything a host or a fabric switch sends, one protocol a file.

Importing a module binds its layers, so that Scapy dissects captures down to the payload. Widths are written
here once; `codec.layout` reads them for the fast codec.
"""
