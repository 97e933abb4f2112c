# SPDX-License-Identifier: Apache-2.0
"""What makes help and completion start fast."""
