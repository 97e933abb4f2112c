# SPDX-License-Identifier: Apache-2.0
"""In-band queries: packet-outs and packet-ins that read state of our programs."""
