# SPDX-License-Identifier: Apache-2.0
"""P4Runtime, the same for all schemes: programs, typed entities, differences, and clients of a switch."""
