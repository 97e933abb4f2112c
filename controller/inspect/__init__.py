# SPDX-License-Identifier: Apache-2.0
"""Inspection of running switches: tables, groups, counters, queues and flows with typed values.

Nothing here changes a switch. What is read are `Listing`s of rows; showing them is left to the caller.
"""
