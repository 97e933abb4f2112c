# SPDX-License-Identifier: Apache-2.0
"""The transport tcp, by RFCs 5681, 6298 and 6675."""
