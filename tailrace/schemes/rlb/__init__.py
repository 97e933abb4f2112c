# SPDX-License-Identifier: Apache-2.0
"""RLB, which extends one of four path selectors: Presto, LetFlow, DRILL, Hermes."""
