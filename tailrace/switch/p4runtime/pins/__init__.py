# SPDX-License-Identifier: Apache-2.0
"""What PINS asks for beyond the specification: constraints, references, roles by annotation; and strings.

A program that has none of them does not load this folder.
"""
