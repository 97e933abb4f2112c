# SPDX-License-Identifier: Apache-2.0
"""Listings: rows of typed values, filters over them, rates."""
