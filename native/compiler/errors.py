# SPDX-License-Identifier: Apache-2.0
"""The one error of the compiler."""


class ProgramError(Exception):
    """A program that cannot be loaded: bad JSON, or a construct the switch does not have.

    The text is one line that names the file and the construct.
    """
