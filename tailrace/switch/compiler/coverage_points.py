# SPDX-License-Identifier: Apache-2.0
"""Coverage points: parts of a program whose executions a tracing build (docs/learn/glossary.md) counts."""

from __future__ import annotations

from typing import Literal

import msgspec

from tailrace.switch.compiler.model import Extract, Model, Pipeline, Primitive, Source, Verify

Kind = Literal["state", "select", "extract", "action", "statement", "table", "condition"]


class CoveragePoint(msgspec.Struct, frozen=True):
    """A part of a program that a packet may execute.

    `name` is the name of the state, action, table or condition. `what` is its part: a statement, a
    transition, hit or miss, true or false; empty for the whole state or action.
    """

    kind: Kind
    name: str
    what: str
    source: Source | None = None


_Key = tuple[str, int, int]
"""Kind, index of the state, action, table or pipeline, and number of the part in it.

A condition: 0 (ingress) or 1 (egress), and 2 * its index + its value.
"""


class CoveragePoints:
    """All coverage points of a program, in a fixed order."""

    def __init__(self, model: Model) -> None:
        self.all: list[CoveragePoint] = []
        self._indexes: dict[_Key, int] = {}
        for index, state in enumerate(model.parser.states):
            self._add(("state", index, 0), CoveragePoint("state", state.name, ""))
            for i, op in enumerate(state.ops):
                self._add(("op", index, i), _parser_op_point(state.name, op))
            if state.key and state.transitions:
                for case, transition in enumerate(state.transitions):
                    self._add(
                        ("select", index, case),
                        CoveragePoint("select", state.name, f"-> {transition.next or 'accept'}"),
                    )
                default = CoveragePoint("select", state.name, f"default -> {state.default or 'accept'}")
                self._add(("select", index, len(state.transitions)), default)
        for action in model.actions:
            self._add(("action", action.index, 0), CoveragePoint("action", action.name, "", action.source))
            for i, statement in enumerate(action.body):
                self._add(("statement", action.index, i), _statement_point(action.name, statement))
        for i, statement in enumerate(model.deparser_calls):
            self._add(("deparser", 0, i), _statement_point("deparser", statement))
        for pipeline in (model.ingress, model.egress):
            self._add_pipeline(model, pipeline)

    def _add_pipeline(self, model: Model, pipeline: Pipeline) -> None:
        for index in pipeline.tables:
            table = model.tables[index]
            if not table.is_call:
                for hit, what in enumerate(("miss", "hit") if table.key else ("applied",)):
                    self._add(("table", index, hit), CoveragePoint("table", table.name, what, table.source))
        egress = int(pipeline is model.egress)
        for index, condition in enumerate(pipeline.conditionals):
            for value, what in enumerate(("false", "true")):
                part = 2 * index + value
                self._add(
                    ("condition", egress, part),
                    CoveragePoint("condition", condition.text or condition.name, what, condition.source),
                )

    def _add(self, key: _Key, point: CoveragePoint) -> None:
        self._indexes[key] = len(self.all)
        self.all.append(point)

    def index(self, kind: str, index: int, part: int = 0) -> int:
        """The index of a coverage point in `all`; its counter has the same index."""
        return self._indexes[kind, index, part]


def _parser_op_point(state: str, op: object) -> CoveragePoint:
    if isinstance(op, Primitive):
        return _statement_point(state, op)
    if isinstance(op, Extract):
        return CoveragePoint("extract", state, "extract")
    return CoveragePoint("statement", state, "verify" if isinstance(op, Verify) else "set")


def _statement_point(name: str, statement: Primitive) -> CoveragePoint:
    return CoveragePoint("statement", name, statement.text or statement.op, statement.source)
