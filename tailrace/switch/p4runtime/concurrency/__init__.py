# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom when several clients want the same, or much."""
