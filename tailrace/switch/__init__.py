# SPDX-License-Identifier: Apache-2.0
"""The native v1model switch: compiler, runtime, and real-time daemon."""
