# SPDX-License-Identifier: Apache-2.0
"""C text for expressions, with exactly the values that BMv2 computes with its integers of unlimited range.

There are two methods of computing a value, chosen by its use:

* raw (``_raw_word``, ``_raw_limbs``): the value modulo 2^n, for masks and assignments. Sums, products and bit
  operations need only the low n bits of their operands, so no intermediate result grows.
* ``exact``: the value itself, for comparisons, right shifts, division and saturation, in the first of uint64,
  int64, uint128, int128 and arrays of limbs (64-bit words, the lowest first) that can represent its bounds.

Some expressions need C statements: arithmetic on limbs, and stack elements whose index is known only at run
time. These statements are emitted before the statement that uses the expression. No expression has a side
effect.

BMv2's names of casts: two_comp_mod to int<W>, usat_cast and sat_cast saturate, b2d and d2b convert a boolean
to a number and back.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.switch.compiler.emit.bounds import Bounds, BoundsOf, union, width
from tailrace.switch.compiler.emit.locals import Locals
from tailrace.switch.compiler.emit.lvalues import NO_LOCALS, Lvalues, field_name
from tailrace.switch.compiler.emit.text import CodeWriter, literal
from tailrace.switch.compiler.errors import CompilerError
from tailrace.switch.compiler.expr import (
    COMPARISONS,
    ActionParam,
    BoolConst,
    Const,
    Expr,
    FieldRef,
    HeaderInst,
    HeaderRef,
    IsValid,
    IsValidUnion,
    Lookahead,
    Op,
    RegisterCell,
    SameHeader,
    SameUnion,
    StackCount,
    StackElem,
    StackLast,
    UnionInst,
    UnionMember,
    UnionRef,
    ValidBit,
    is_boolean,
)
from tailrace.switch.compiler.model import Model, Param, limbs_of

# operators whose low n bits depend only on the low n bits of their operands
_MODULAR = {"+", "-", "*", "|", "^", "&", "~", "<<", "?"}
_LIMB_OP = {"+": "add", "-": "sub", "*": "mul", "|": "or", "^": "xor", "&": "and"}


@dataclass(frozen=True, slots=True)
class Val:
    """C text of a number, and its bounds; if ``limbs`` is not 0, the text is an array of that many limbs."""

    code: str
    bounds: Bounds
    limbs: int = 0


def kind_of(b: Bounds) -> str:
    """The first representation that suffices: u64, s64, u128, s128, or wide (limbs)."""
    low, high = b
    if low >= 0 and high < 2**64:
        return "u64"
    if low >= -(2**63) and high < 2**63:
        return "s64"
    if low >= 0 and high < 2**128:
        return "u128"
    if low >= -(2**127) and high < 2**127:
        return "s128"
    return "wide"


_CTYPE = {"u64": "uint64_t", "s64": "int64_t", "u128": "tr_u128", "s128": "tr_s128"}


class Values(Lvalues):
    """C text of the expressions and lvalues in one function body."""

    def __init__(
        self,
        code: CodeWriter,
        model: Model,
        c_locals: Locals = NO_LOCALS,
        params: tuple[Param, ...] = (),
    ) -> None:
        super().__init__(model, c_locals)
        self.code = code
        self.params = params
        self.bounds = BoundsOf(model, params)
        # offset of each parameter in the action data, in limbs
        self.offsets: list[int] = []
        offset = 0
        for p in params:
            self.offsets.append(offset)
            offset += limbs_of(p.bits)

    # ---- lvalues; a stack element is found by code that is emitted first ----

    def union(self, ref: UnionRef) -> str:
        """The lvalue of a union."""
        return self.union_inst(ref.index) if isinstance(ref, UnionInst) else self._element(ref)

    def header(self, ref: HeaderRef) -> str:
        """The lvalue of a header."""
        if isinstance(ref, HeaderInst):
            return self.header_inst(ref.index)
        if isinstance(ref, UnionMember):
            return f"{self.union(ref.union)}.m{ref.member}"
        return self._element(ref)

    def field(self, ref: FieldRef) -> str:
        """The lvalue of a field."""
        name = field_name(self.model.type_of(ref.header), ref.field)
        if isinstance(ref.header, HeaderInst) and (ref.header.index, ref.field) in self.c_locals.fields:
            return f"l->h{ref.header.index}_{name}"
        return f"{self.header(ref.header)}.{name}"

    def _element(self, ref: StackElem | StackLast) -> str:
        """Emits a pointer to a stack's element, or to a zeroed element if the index is out of range.

        Returns:
            C text of the element pointed to.
        """
        stack, code = self.model.stacks[ref.stack], self.code
        array, kind, count = self.stack(ref.stack), self.element_type(stack), len(stack.elements)
        if isinstance(ref, StackElem):
            index = self.index(ref.index)
        else:
            index = f"(uint64_t){self.stack_next(ref.stack)} - 1"
        blank, i, pointer = code.temp(), code.temp(), code.temp()
        code.line(f"{kind} {blank};")
        code.line(f"uint64_t {i} = {index};")
        code.line(f"if ({i} >= {count})")
        code.line(f"    memset(&{blank}, 0, sizeof {blank});")
        code.line(f"{kind} *{pointer} = {i} < {count} ? &{array}[{i}] : &{blank};")
        return f"(*{pointer})"

    # ---- booleans ----

    def boolean(self, e: Expr) -> str:
        """C text of a boolean; a number counts as true if it is not zero."""
        if isinstance(e, BoolConst):
            return "1" if e.value else "0"
        if isinstance(e, IsValid):
            return f"({self.header(e.header)}.valid != 0)"
        if isinstance(e, IsValidUnion):
            return self._union_valid(e.union)
        if isinstance(e, SameHeader):
            left = self.header(e.left)
            right = self.header(e.right)
            ltype, rtype = self.model.type_of(e.left), self.model.type_of(e.right)
            return f"same_ht{ltype.index}(&{left}, &{right})" if ltype.index == rtype.index else "0"
        if isinstance(e, SameUnion):
            return self._same_union(e)
        if isinstance(e, Op) and is_boolean(e):
            return self._boolean_op(e)
        return self._nonzero(self.exact(e))

    def _boolean_op(self, e: Op) -> str:
        if e.name == "not":
            return f"(!{self.boolean(e.args[0])})"
        if e.name in ("and", "or"):
            op = "&&" if e.name == "and" else "||"
            return f"({self.boolean(e.args[0])} {op} {self.boolean(e.args[1])})"
        if e.name == "?":
            return f"({self.boolean(e.args[0])} ? {self.boolean(e.args[1])} : {self.boolean(e.args[2])})"
        if e.name == "d2b":
            return self._nonzero(self.exact(e.args[0]))
        assert e.name in COMPARISONS
        if is_boolean(e.args[0]):
            return f"(!{self.boolean(e.args[0])} {e.name} !{self.boolean(e.args[1])})"
        varbits = [x for x in e.args if isinstance(x, FieldRef) and self.model.field_type(x).varbit]
        if len(varbits) == 2 and e.name in ("==", "!="):
            return self._same_varbit(varbits[0], varbits[1], e.name)
        a, b = self.exact(e.args[0]), self.exact(e.args[1])
        kind = kind_of(union(a.bounds, b.bounds))
        if kind == "wide":
            n = limbs_of(width(union(a.bounds, b.bounds)))
            return f"(trw_cmp({self._to_limbs(a, n)}, {self._to_limbs(b, n)}, {n}) {e.name} 0)"
        return f"(({_CTYPE[kind]}){a.code} {e.name} ({_CTYPE[kind]}){b.code})"

    def _same_varbit(self, left: FieldRef, right: FieldRef, op: str) -> str:
        """C text that compares varbit fields: they are equal if their lengths and their bits are equal."""
        a = self.header(left.header)
        b = self.header(right.header)
        x = field_name(self.model.type_of(left.header), left.field)
        y = field_name(self.model.type_of(right.header), right.field)
        same = f"{a}.vl_bits == {b}.vl_bits && !memcmp({a}.{x}, {b}.{y}, {a}.vl_bits / 8)"
        return f"({same})" if op == "==" else f"(!({same}))"

    def _nonzero(self, v: Val) -> str:
        return f"(!trw_is_zero({v.code}, {v.limbs}))" if v.limbs else f"({v.code} != 0)"

    def _union_valid(self, ref: UnionRef) -> str:
        place = self.union(ref)
        count = len(self.model.union_of(ref).members)
        return "(" + " || ".join(f"{place}.m{k}.valid" for k in range(count)) + ")"

    def _same_union(self, e: SameUnion) -> str:
        """C text that compares unions: equal if the same member is valid in both, with equal fields."""
        left, right = self.model.union_of(e.left), self.model.union_of(e.right)
        if left.type != right.type:
            return "0"
        a = self.union(e.left)
        b = self.union(e.right)
        parts = []
        for k, member in enumerate(left.members):
            kind = self.model.headers[member].type
            parts.append(f"same_ht{kind}(&{a}.m{k}, &{b}.m{k})")
        return "(" + " || ".join(parts) + ")"

    # ---- exact numbers ----

    def exact(self, e: Expr) -> Val:
        """C text of the value itself, not modulo a power of two."""
        b = self.bounds(e)
        kind = kind_of(b)
        if isinstance(e, Const):
            return self._const(e.value, b, kind)
        if isinstance(e, Op) and e.name not in _MODULAR:
            return self._exact_op(e, b)
        if isinstance(e, Op) or kind == "wide":
            if kind == "wide":
                n = limbs_of(width(b))
                return Val(self._raw_limbs(e, 64 * n), b, n)
            bits = 64 if kind in ("u64", "s64") else 128
            return Val(f"(({_CTYPE[kind]}){self._raw_word(e, bits)})", b)
        return Val(self._leaf(e), b)

    def _const(self, value: int, b: Bounds, kind: str) -> Val:
        if kind == "wide":
            n = limbs_of(width(b))
            return Val(self._const_limbs(value, n), b, n)
        bits = 64 if kind in ("u64", "s64") else 128
        return Val(f"(({_CTYPE[kind]}){literal(value, bits)})", b)

    def _leaf(self, e: Expr) -> str:
        """A field, parameter or other operand of at most 128 bits, in the C type of its bounds."""
        if isinstance(e, FieldRef):
            f = self.model.field_type(e)
            if f.varbit:
                raise CompilerError(f"{self.model.name}: varbit field {f.name} is used as a number")
            place = self.field(e)
            if f.signed:
                sext = "tr_sext64" if f.bits <= 64 else "tr_sext128"
                return f"{sext}({place}, {f.bits})"
            return f"(uint64_t){place}" if f.bits <= 64 else place
        if isinstance(e, ValidBit):
            return f"(uint64_t)({self.header(e.header)}.valid != 0)"
        if isinstance(e, ActionParam):
            limb = self.offsets[e.index]
            low = f"d[{limb}]"
            return low if self.params[e.index].bits <= 64 else f"((tr_u128)d[{limb + 1}] << 64 | {low})"
        if isinstance(e, StackCount):
            count = self.stack_next(e.stack)
            return f"((uint64_t){count} - 1)" if e.minus_one else f"(uint64_t){count}"
        if isinstance(e, RegisterCell):
            return self._register_cell(e)
        if isinstance(e, Lookahead):
            get = "tr_get64" if e.bits <= 64 else "tr_get128"
            return f"{get}(pkt + pos, {e.offset}, {e.bits})"
        if is_boolean(e):
            return f"(uint64_t){self.boolean(e)}"
        raise AssertionError(e)

    def _register_cell(self, e: RegisterCell) -> str:
        bits = self.model.registers[e.register].bits
        t = self.code.temp()
        kind = "uint64_t" if bits <= 64 else "tr_u128"
        self.code.line(f"{kind} {t} = 0;")
        self.code.line(f"reg{e.register}_read(s, {self.index(e.index)}, &{t});")
        return t

    def _exact_op(self, e: Op, b: Bounds) -> Val:
        if e.name == "b2d":
            return Val(f"((uint64_t){self.boolean(e.args[0])})", b)
        if e.name == "two_comp_mod":
            return self._sign_extended(e, b)
        if e.name in ("usat_cast", "sat_cast"):
            return self._saturated(e, b)
        if e.name == ">>":
            return self._shifted_right(e, b)
        assert e.name in ("/", "%"), e.name
        return self._divided(e, b)

    def _sign_extended(self, e: Op, b: Bounds) -> Val:
        bits = self.bounds(e.args[1])[1]
        if b == self.bounds(e.args[0]) and kind_of(b) != "wide":
            return self.exact(e.args[0])  # every value fits the width
        if bits <= 64:
            return Val(f"tr_sext64({self._raw_word(e.args[0], bits)}, {bits})", b)
        if bits <= 128:
            return Val(f"tr_sext128({self._raw_word(e.args[0], bits)}, {bits})", b)
        n = limbs_of(bits)
        t = self._copied_limbs(self._raw_limbs(e.args[0], 64 * n), n)
        self.code.line(f"trw_sext({t}, {n}, {bits});")
        return Val(t, b, n)

    def _saturated(self, e: Op, b: Bounds) -> Val:
        v = self.exact(e.args[0])
        bits = self.bounds(e.args[1])[1]
        low, high = (0, (1 << bits) - 1) if e.name == "usat_cast" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        kind = kind_of(union(v.bounds, (low, high)))
        if kind != "wide":
            t, c = self.code.temp(), _CTYPE[kind]
            width_bits = 64 if kind in ("u64", "s64") else 128
            lo, hi = f"({c}){literal(low, width_bits)}", f"({c}){literal(high, width_bits)}"
            self.code.line(f"{c} {t} = ({c}){v.code};")
            below = f"{t} < {lo} ? {lo} : " if v.bounds[0] < low else ""
            clamped = f"({t} > {hi} ? {hi} : {below}{t})"
            return Val(f"(({_CTYPE[kind_of(b)]}){clamped})", b)
        n = limbs_of(width(union(v.bounds, (low, high))))
        t = self._copied_limbs(self._to_limbs(v, n), n)
        for op, limit in ((">", high), ("<", low)):
            bound = self._const_limbs(limit, n)
            self.code.line(f"if (trw_cmp({t}, {bound}, {n}) {op} 0)")
            self.code.line(f"    memcpy({t}, {bound}, sizeof {t});")
        return self._narrowed(Val(t, b, n))

    def _narrowed(self, v: Val) -> Val:
        """Limbs converted to a C integer type, if one can represent the bounds of the value."""
        kind = kind_of(v.bounds)
        if kind == "wide":
            return v
        return Val(f"(({_CTYPE[kind]})trw_low128({v.code}, {v.limbs}))", v.bounds)

    def _shifted_right(self, e: Op, b: Bounds) -> Val:
        v, amount = self.exact(e.args[0]), self.index(e.args[1])
        if v.limbs:
            t = self._new_limbs(v.limbs)
            self.code.line(f"trw_shr({t}, {v.code}, {v.limbs}, {amount});")
            return self._narrowed(Val(t, b, v.limbs))
        kind = kind_of(v.bounds)
        shifted = f"tr_shr_{kind}({v.code}, {amount})"
        return Val(f"(({_CTYPE[kind_of(b)]}){shifted})", b)

    def _divided(self, e: Op, b: Bounds) -> Val:
        x, y = self.exact(e.args[0]), self.exact(e.args[1])
        both = union(x.bounds, y.bounds)
        if both[0] < 0:
            raise CompilerError(f"{self.model.name}: {e.name} of signed numbers is not supported")
        if kind_of(both) != "wide":
            c = _CTYPE[kind_of(both)]
            t = self.code.temp()
            self.code.line(f"{c} {t} = {y.code};")
            return Val(f"(({_CTYPE[kind_of(b)]})({t} ? ({c}){x.code} {e.name} {t} : 0))", b)
        n = limbs_of(width(both))
        q, r = self._new_limbs(n), self._new_limbs(n)
        self.code.line(f"trw_divmod({q}, {r}, {self._to_limbs(x, n)}, {self._to_limbs(y, n)}, {n});")
        return self._narrowed(Val(q if e.name == "/" else r, b, n))

    # ---- numbers modulo 2^n ----

    def clean(self, e: Expr, bits: int) -> str:
        """The value modulo 2^bits (bits <= 128), with all higher bits zero."""
        word = self._raw_word(e, bits)
        if bits in (64, 128) or self._is_clean(e, bits):
            return word
        return f"({word} & {literal((1 << bits) - 1, bits)})"

    def _is_clean(self, e: Expr, bits: int) -> bool:
        """Whether all bits of ``_raw_word`` from bit ``bits`` upwards are zero."""
        b = self.bounds(e)
        if not isinstance(e, Op) or e.name in ("b2d", ">>", "/", "%", "usat_cast"):
            return b[0] >= 0 and b[1] < (1 << bits)
        if e.name == "&":
            return any(self._is_clean(x, bits) for x in e.args)
        return e.name in ("|", "^") and all(self._is_clean(x, bits) for x in e.args)

    def clean_limbs(self, e: Expr, bits: int) -> str:
        """The value modulo 2^bits as an array of ``limbs_of(bits)`` limbs."""
        n = limbs_of(bits)
        t = self._copied_limbs(self._raw_limbs(e, 64 * n), n)
        self.code.line(f"trw_mask({t}, {n}, {bits});")
        return t

    def index(self, e: Expr) -> str:
        """A non-negative number as uint64_t; larger values saturate at UINT64_MAX."""
        v = self.exact(e)
        kind = kind_of(v.bounds)
        if v.limbs:
            return f"tr_index_limbs({v.code}, {v.limbs})"
        return v.code if kind == "u64" else f"tr_index_{kind}({v.code})"

    def _raw_word(self, e: Expr, bits: int) -> str:
        """A uint64_t (bits <= 64) or tr_u128 congruent to the value modulo 2^bits."""
        if isinstance(e, Const):
            return literal(e.value & ((1 << bits) - 1), bits)
        if isinstance(e, Op) and e.name in _MODULAR:
            return self._raw_op(e, bits)
        if isinstance(e, Op) and e.name == "two_comp_mod" and self.bounds(e.args[1])[1] >= bits:
            return self._raw_word(e.args[0], bits)
        c = "uint64_t" if bits <= 64 else "tr_u128"
        if kind_of(self.bounds(e)) == "wide" and not isinstance(e, Op):
            return f"(({c})trw_low128({self._leaf_limbs(e)}, {limbs_of(width(self.bounds(e)) - 1)}))"
        v = self.exact(e)
        return f"(({c})trw_low128({v.code}, {v.limbs}))" if v.limbs else f"(({c}){v.code})"

    def _raw_op(self, e: Op, bits: int) -> str:
        if e.name == "?":
            a, b = self._raw_word(e.args[1], bits), self._raw_word(e.args[2], bits)
            return f"({self.boolean(e.args[0])} ? {a} : {b})"
        if e.name == "~":
            return f"(~{self._raw_word(e.args[0], bits)})"
        if e.name == "<<":
            amount = self.index(e.args[1])
            suffix = "64" if bits <= 64 else "128"
            return f"tr_shl{suffix}({self._raw_word(e.args[0], bits)}, {amount})"
        if e.name == "&":
            # an operand that is not negative limits the bits that are needed of both operands
            for side in (0, 1):
                mask = self.bounds(e.args[side])
                if mask[0] >= 0:
                    bits_needed = min(bits, max(1, mask[1].bit_length()))
                    a, b = (self._raw_word(x, bits_needed) for x in e.args)
                    if bits_needed < bits and not isinstance(e.args[side], Const):
                        full = literal((1 << bits_needed) - 1, bits_needed)
                        a = f"({a} & {full})"
                    c = "uint64_t" if bits <= 64 else "tr_u128"
                    return f"(({c})({a} & {b}))"
        a, b = (self._raw_word(x, bits) for x in e.args)
        return f"({a} {e.name} {b})"

    # ---- limbs ----

    def _new_limbs(self, n: int) -> str:
        t = self.code.temp()
        self.code.line(f"uint64_t {t}[{n}];")
        return t

    def _copied_limbs(self, source: str, n: int) -> str:
        t = self._new_limbs(n)
        self.code.line(f"memcpy({t}, {source}, sizeof {t});")
        return t

    def _const_limbs(self, value: int, n: int) -> str:
        t = self.code.temp()
        limbs = ", ".join(literal(value >> 64 * i, 64) for i in range(n))
        self.code.line(f"static const uint64_t {t}[{n}] = {{{limbs}}};")
        return t

    def _to_limbs(self, v: Val, n: int) -> str:
        """An exact value as n limbs, sign extended."""
        if v.limbs == n:
            return v.code
        t = self._new_limbs(n)
        if v.limbs:
            self.code.line(f"trw_copy({t}, {n}, {v.code}, {v.limbs}, 1);")
        elif kind_of(v.bounds) in ("u64", "u128"):
            self.code.line(f"trw_from_u128({t}, {n}, {v.code});")
        else:
            self.code.line(f"trw_from_s128({t}, {n}, {v.code});")
        return t

    def _leaf_limbs(self, e: Expr) -> str:
        """An array with the limbs of a field, parameter, register cell or lookahead of more than 128 bits."""
        if isinstance(e, FieldRef):
            return self.field(e)
        if isinstance(e, ActionParam):
            return f"(d + {self.offsets[e.index]})"
        b = self.bounds(e)
        bits = b[1].bit_length()
        t = self._new_limbs(limbs_of(bits))
        if isinstance(e, Lookahead):
            self.code.line(f"tr_get_limbs(pkt + pos, {e.offset}, {e.bits}, {t});")
        else:
            assert isinstance(e, RegisterCell)
            self.code.line(f"memset({t}, 0, sizeof {t});")
            self.code.line(f"reg{e.register}_read(s, {self.index(e.index)}, {t});")
        return t

    def _raw_limbs(self, e: Expr, bits: int) -> str:
        """An array of bits / 64 limbs, congruent to the value modulo 2^bits; bits is a multiple of 64."""
        n = bits // 64
        if isinstance(e, Const):
            return self._const_limbs(e.value, n)
        if isinstance(e, Op) and e.name in _MODULAR:
            return self._raw_limbs_op(e, n)
        if isinstance(e, Op) or kind_of(self.bounds(e)) != "wide":
            return self._to_limbs(self.exact(e), n)
        leaf = self._leaf_limbs(e)
        leaf_limbs = self._limbs_of_leaf(e)
        f = self.model.field_type(e) if isinstance(e, FieldRef) else None
        t = self._new_limbs(n)
        if f is not None and f.signed:
            extended = self._copied_limbs(leaf, leaf_limbs)
            self.code.line(f"trw_sext({extended}, {leaf_limbs}, {f.bits});")
            self.code.line(f"trw_copy({t}, {n}, {extended}, {leaf_limbs}, 1);")
        else:
            self.code.line(f"trw_copy({t}, {n}, {leaf}, {leaf_limbs}, 0);")
        return t

    def _limbs_of_leaf(self, e: Expr) -> int:
        if isinstance(e, FieldRef):
            return limbs_of(self.model.field_type(e).bits)
        return limbs_of(self.bounds(e)[1].bit_length())

    def _raw_limbs_op(self, e: Op, n: int) -> str:
        if e.name == "?":
            a, b = self._raw_limbs(e.args[1], 64 * n), self._raw_limbs(e.args[2], 64 * n)
            return self._copied_limbs(f"({self.boolean(e.args[0])} ? {a} : {b})", n)
        a = self._raw_limbs(e.args[0], 64 * n)
        t = self._new_limbs(n)
        if e.name == "~":
            self.code.line(f"trw_not({t}, {a}, {n});")
        elif e.name == "<<":
            self.code.line(f"trw_shl({t}, {a}, {n}, {self.index(e.args[1])});")
        else:
            b = self._raw_limbs(e.args[1], 64 * n)
            self.code.line(f"trw_{_LIMB_OP[e.name]}({t}, {a}, {b}, {n});")
        return t

    # ---- assignment ----

    def assign(self, target: FieldRef, e: Expr) -> None:
        """Emits ``target = e``, truncated to the field's width."""
        f = self.model.field_type(target)
        if f.varbit:
            raise CompilerError(f"{self.model.name}: varbit field {f.name} is assigned a number")
        if f.bits == 0:
            return
        if f.saturating:
            e = Op("sat_cast" if f.signed else "usat_cast", (e, Const(f.bits)))
        if f.bits > 128:
            t = self.clean_limbs(e, f.bits)
            place = self.field(target)
            self.code.line(f"memcpy({place}, {t}, sizeof {place});")
            return
        word = self.clean(e, f.bits)
        self.code.line(f"{self.field(target)} = {word};")

    def store_limbs(self, e: Expr, bits: int, array: str, first: int) -> None:
        """Emits the store of a value modulo 2^bits as limbs into ``array``, from index ``first`` on."""
        if bits <= 64:
            self.code.line(f"{array}[{first}] = {self.clean(e, max(bits, 1))};")
        elif bits <= 128:
            t = self.code.temp()
            self.code.line(f"tr_u128 {t} = {self.clean(e, bits)};")
            self.code.line(f"{array}[{first}] = (uint64_t){t};")
            self.code.line(f"{array}[{first + 1}] = (uint64_t)({t} >> 64);")
        else:
            n = limbs_of(bits)
            self.code.line(f"memcpy({array} + {first}, {self.clean_limbs(e, bits)}, {8 * n});")
