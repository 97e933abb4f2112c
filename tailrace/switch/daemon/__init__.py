# SPDX-License-Identifier: Apache-2.0
"""The daemon of the switch in real time: command line, ports, signals."""
