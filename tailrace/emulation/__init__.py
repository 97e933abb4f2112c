# SPDX-License-Identifier: Apache-2.0
"""Where a planned run is carried out."""
