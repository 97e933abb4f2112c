# SPDX-License-Identifier: Apache-2.0
"""The report of a folder of results: one self-contained HTML page that needs no network connection."""
