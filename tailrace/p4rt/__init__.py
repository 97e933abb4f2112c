# SPDX-License-Identifier: Apache-2.0
"""P4Runtime, independent of schemes: programs, typed entities, differences, and clients of a switch."""
