# SPDX-License-Identifier: Apache-2.0
"""Commands about finished runs that a repository keeps."""
