# SPDX-License-Identifier: Apache-2.0
"""P4Runtime without any scheme: programs, typed entries, differences, and clients of a switch."""
