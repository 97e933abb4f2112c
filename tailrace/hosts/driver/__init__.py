# SPDX-License-Identifier: Apache-2.0
"""Runs NICs in real time on packet sockets: `python -m tailrace.hosts.driver --help`."""
