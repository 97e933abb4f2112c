# SPDX-License-Identifier: Apache-2.0
"""Frames of hosts: Scapy layers that define every format, and a fast parser and builder in C."""
