# SPDX-License-Identifier: Apache-2.0
"""Files of simple_switch_CLI's commands."""
