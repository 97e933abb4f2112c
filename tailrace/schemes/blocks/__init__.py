# SPDX-License-Identifier: Apache-2.0
"""Modules that several schemes share: table entries, groups of next hops, limits of hosts, PFC."""
