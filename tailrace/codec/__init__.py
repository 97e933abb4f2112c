# SPDX-License-Identifier: Apache-2.0
"""Frames: the Scapy layers that define every format, and what reads and writes them fast."""
