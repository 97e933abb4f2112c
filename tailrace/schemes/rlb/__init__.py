# SPDX-License-Identifier: Apache-2.0
"""RLB over one of four path selectors."""
