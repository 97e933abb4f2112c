# SPDX-License-Identifier: Apache-2.0
"""PINS's extensions of P4Runtime: constraints, references, and roles by annotation; and translated strings.

A program that uses none of these features does not import this package.
"""
