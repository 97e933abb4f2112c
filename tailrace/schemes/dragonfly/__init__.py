# SPDX-License-Identifier: Apache-2.0
"""Routing in a Dragonfly: minimal, Valiant, UGAL-L."""
