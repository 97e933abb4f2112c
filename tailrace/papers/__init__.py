# SPDX-License-Identifier: Apache-2.0
"""The papers' figures and tables as experiments: a TOML file each, and what runs and judges them."""
