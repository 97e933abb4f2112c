# SPDX-License-Identifier: Apache-2.0
"""What the tests of DRILL stand on: the leaf switch of ptf_tests.fabric, with the slots of its candidates."""

from __future__ import annotations

from ptf_tests.fabric import FabricTest

CANDIDATES = ("remembered_members", "first_members", "other_members")


class DrillTest(FabricTest):
    """The slots of a group, once more for each candidate."""

    program = "drill"

    def add_group(self, address: str, group: int, ports: tuple[int, ...], size: int | None = None) -> None:
        super().add_group(address, group, ports, size)
        for table in CANDIDATES:
            for slot, port in enumerate(ports):
                self.add_entry(table, {"group": group, "slot": slot}, self.action("sampled", port=port))
