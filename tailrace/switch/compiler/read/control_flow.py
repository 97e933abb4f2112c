# SPDX-License-Identifier: Apache-2.0
"""Checks the control flow of a pipeline: all successors exist, and there is no cycle.

P4's controls have no loops. In the generated C a node is a label and an edge a goto: a cycle would loop for
ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tailrace.spec.text import ELLIPSIS
from tailrace.switch.compiler.model import Pipeline, Table
from tailrace.switch.compiler.read.node import JsonNode

_MOST_NAMED = 6
"""Nodes of a circle that the message names."""
_NAME_CHARS = 60


def check_flow(node: JsonNode, pipeline: Pipeline, tables: Sequence[Table]) -> None:
    """Checks a pipeline, the JSON value `node`.

    Args:
        tables: those of all pipelines.

    Raises:
        CompilerError: a node that follows does not exist, or nodes follow each other in a circle.
    """
    after = _after(pipeline, tables)
    first = [] if pipeline.init is None else [pipeline.init]
    for names in (first, *after.values()):
        for name in names:
            if name not in after:
                node.fail(f'no node is named "{name}"')
    circle = _cycle(after)
    if circle:
        named = [f'"{_cut(name)}"' for name in circle[:_MOST_NAMED]]
        rest = [f"{len(circle) - _MOST_NAMED} more"] if len(circle) > _MOST_NAMED else []
        node.fail(f"nodes follow each other in a circle: {' -> '.join([*named, *rest, named[0]])}")


def _after(pipeline: Pipeline, tables: Sequence[Table]) -> dict[str, list[str]]:
    """The successors of each node."""
    after: dict[str, tuple[str | None, ...]] = {}
    for i in pipeline.tables:
        t = tables[i]
        after[t.name] = (*t.next_by_action.values(), t.next_hit, t.next_miss, t.next_default)
    after |= {c.name: (c.true_next, c.false_next) for c in pipeline.conditionals}
    after |= {call.name: (call.next,) for call in pipeline.calls}
    return {name: [n for n in nodes if n is not None] for name, nodes in after.items()}


def _cycle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes of a cycle in order; none if there is none.

    A depth-first search without recursion: pipelines may have more nodes than Python's stack has frames.
    """
    left: set[str] = set()
    for first in after:
        # the nodes from the first to where we are, each with what is still to be seen behind it
        way = {} if first in left else {first: iter(after[first])}
        while way:
            last = next(reversed(way))
            successor = next(way[last], None)
            if successor is None:
                way.popitem()
                left.add(last)
            elif successor in way:
                names = list(way)
                return names[names.index(successor) :]
            elif successor not in left:
                way[successor] = iter(after[successor])
    return []


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_CHARS else name[:_NAME_CHARS] + ELLIPSIS
