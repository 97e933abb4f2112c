# SPDX-License-Identifier: Apache-2.0
"""Questions that programs of ours answer by packets."""
