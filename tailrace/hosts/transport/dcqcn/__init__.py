# SPDX-License-Identifier: Apache-2.0
"""The transport dcqcn: go-back-N with the rate control DCQCN."""
