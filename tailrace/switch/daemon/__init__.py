# SPDX-License-Identifier: Apache-2.0
"""The real-time front end: command line, ports, signals."""
