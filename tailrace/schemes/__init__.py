# SPDX-License-Identifier: Apache-2.0
"""Load-balancing schemes: their specs, values that follow from a topology, and the entries of switches."""
