# SPDX-License-Identifier: Apache-2.0
"""The store of finished runs: files in the repository with one line per run."""
