# SPDX-License-Identifier: Apache-2.0
"""One packet of a finished run in virtual time, afterwards: the run is repeated, and watched."""
