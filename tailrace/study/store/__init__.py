# SPDX-License-Identifier: Apache-2.0
"""Finished runs, one line each, in files that a repository keeps."""
