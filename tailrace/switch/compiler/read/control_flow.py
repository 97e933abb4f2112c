# SPDX-License-Identifier: Apache-2.0
"""Checks the control flow of a pipeline: all successors exist, and there is no cycle.

P4's controls have no loops. In the generated C, a node is a label and an edge is a goto, so a cycle would be
an endless loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tailrace.spec.text import ELLIPSIS
from tailrace.switch.compiler.model import Pipeline, Table
from tailrace.switch.compiler.read.node import JsonNode

_MOST_NAMED = 6
"""Maximum number of nodes of a cycle that the message names."""
_NAME_CHARS = 60


def check_flow(node: JsonNode, pipeline: Pipeline, tables: Sequence[Table]) -> None:
    """Checks a pipeline.

    Args:
        node: the pipeline's JSON, for messages.
        pipeline: the pipeline to check.
        tables: the tables of all pipelines.

    Raises:
        CompilerError: a successor does not exist, or there is a cycle.
    """
    successors = _successors(pipeline, tables)
    first = [] if pipeline.init is None else [pipeline.init]
    for names in (first, *successors.values()):
        for name in names:
            if name not in successors:
                node.fail(f'no node is named "{name}"')
    cycle = _cycle(successors)
    if cycle:
        named = [f'"{_cut(name)}"' for name in cycle[:_MOST_NAMED]]
        rest = [f"{len(cycle) - _MOST_NAMED} more"] if len(cycle) > _MOST_NAMED else []
        node.fail(f"the control flow has a cycle: {' -> '.join([*named, *rest, named[0]])}")


def _successors(pipeline: Pipeline, tables: Sequence[Table]) -> dict[str, list[str]]:
    """The successors of each node."""
    successors: dict[str, tuple[str | None, ...]] = {}
    for i in pipeline.tables:
        t = tables[i]
        successors[t.name] = (*t.next_by_action.values(), t.next_hit, t.next_miss, t.next_default)
    successors |= {c.name: (c.true_next, c.false_next) for c in pipeline.conditionals}
    successors |= {call.name: (call.next,) for call in pipeline.calls}
    return {name: [n for n in nodes if n is not None] for name, nodes in successors.items()}


def _cycle(successors: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes of a cycle in order; empty if there is no cycle.

    The depth-first search is not recursive: pipelines may have more nodes than Python's recursion limit.
    """
    finished: set[str] = set()
    for first in successors:
        # the nodes on the path from `first` to the current node, each with its successors not yet visited
        path = {} if first in finished else {first: iter(successors[first])}
        while path:
            last = next(reversed(path))
            successor = next(path[last], None)
            if successor is None:
                path.popitem()
                finished.add(last)
            elif successor in path:
                names = list(path)
                return names[names.index(successor) :]
            elif successor not in finished:
                path[successor] = iter(successors[successor])
    return []


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_CHARS else name[:_NAME_CHARS] + ELLIPSIS
