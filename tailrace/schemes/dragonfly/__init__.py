# SPDX-License-Identifier: Apache-2.0
"""Routing in Dragonfly networks: minimal, Valiant, UGAL-L."""
