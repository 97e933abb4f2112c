# SPDX-License-Identifier: Apache-2.0
"""Flows, their dependencies, and observations of them. These modules are not compiled."""
