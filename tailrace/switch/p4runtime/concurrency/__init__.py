# SPDX-License-Identifier: Apache-2.0
"""Locks, scheduler, admission control and deadlines of the server's calls."""
