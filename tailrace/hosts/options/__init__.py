# SPDX-License-Identifier: Apache-2.0
"""Settings of NICs. These modules are interpreted; the modules that use the settings are compiled."""
