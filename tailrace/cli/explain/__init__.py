# SPDX-License-Identifier: Apache-2.0
"""Commands that explain words and programs: no network is needed."""
