# SPDX-License-Identifier: Apache-2.0
"""Fast start of help and completion."""
