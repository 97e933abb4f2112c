# SPDX-License-Identifier: Apache-2.0
"""What a paper claims, and whether what was measured agrees."""
