# SPDX-License-Identifier: Apache-2.0
"""The command `tailrace`: one thin module per subcommand."""
