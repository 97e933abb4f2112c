# SPDX-License-Identifier: Apache-2.0
"""Labs for courses: sheets with questions, and checks that measure the expected answers in virtual time."""
