# SPDX-License-Identifier: Apache-2.0
"""Inspection of running switches: tables, groups, counters, queues and flows with typed values.

Nothing here changes a switch. Results are `Listing`s of rows, which the caller shows.
"""
