# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML page of a folder of results: opens anywhere, needs no network."""
