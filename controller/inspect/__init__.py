# SPDX-License-Identifier: Apache-2.0
"""Looking into running switches: tables, groups, counters, queues and flows by name and with typed values.

Nothing here changes a switch. What is read are `Listing`s of rows; showing them is left to the caller.
"""
