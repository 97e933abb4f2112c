# SPDX-License-Identifier: Apache-2.0
"""The claims of papers, and their comparison with measurements."""
