# SPDX-License-Identifier: Apache-2.0
"""Families of networks, one file per family: its keys, and how its networks are built."""
