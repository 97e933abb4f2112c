# SPDX-License-Identifier: Apache-2.0
"""The NIC: senders, receivers, timers, order and pauses. All modules are compiled."""
