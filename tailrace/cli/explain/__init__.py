# SPDX-License-Identifier: Apache-2.0
"""Commands that explain specs and programs; they need no network."""
