# SPDX-License-Identifier: Apache-2.0
"""The papers' figures and tables as experiments: a TOML file for each, and code that runs and grades them."""
