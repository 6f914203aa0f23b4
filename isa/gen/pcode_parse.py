"""Recursive-descent parser of the vendor's pseudocode.

Newlines carry no meaning apart from ending `//` comments; `;` is optional. Errors are SpecError
with the line and what was found: the entries that are prose end there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import pcode_ast as ast

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*)
  | (?P<sized>\d+'(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)U?)
  | (?P<cast>\d+'(?:BF|[UIBF])\b)
  | (?P<real>\d+\.\d+F?)
  | (?P<int>(?:0x[0-9a-fA-F]+|\d+)(?:ULL|LL|U)?(?![\w.]))
  | (?P<dim>\d+x\d+\b)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<string>"[^"]*")
  | (?P<op>\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+:|\+=|-=|[-+*/%&|^~!<>=?:;,.(){}\[\]])
    """,
    re.X,
)

_KEYWORDS = frozenset(
    (
        "if",
        "then",
        "elsif",
        "else",
        "endif",
        "for",
        "do",
        "endfor",
        "while",
        "endwhile",
        "declare",
        "break",
        "return",
        "lambda",
    )
)

#: Binary operators, loosest first (all left-associative).
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!=", "<>"),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
    ("**",),
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    line: int


def tokens(text: str) -> list[Token]:
    """Raises SpecError at a character that starts no token."""
    out: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        m = _TOKEN.match(text, at)
        if m is None:
            raise SpecError(f"pseudocode line {line}: no token at {text[at : at + 12]!r}")
        if m.lastgroup != "skip":
            out.append(Token(m.lastgroup or "", m.group(), line))
        line += m.group().count("\n")
        at = m.end()
    out.append(Token("end", "", line))
    return out


def parse(text: str) -> ast.Block:
    """The program of one instruction. Raises SpecError when the text is not code."""
    p = _Parser(tokens(text))
    body = p.block(())
    p.expect_kind("end")
    return body


class _Parser:
    def __init__(self, toks: list[Token]) -> None:
        self.toks, self.at = toks, 0

    # ---- tokens

    @property
    def tok(self) -> Token:
        return self.toks[self.at]

    def next(self) -> Token:
        self.at += 1
        return self.toks[self.at - 1]

    def sees(self, *texts: str) -> bool:
        return self.tok.text in texts and self.tok.kind in ("op", "name")

    def accept(self, text: str) -> bool:
        if self.sees(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected {text!r}")

    def expect_kind(self, kind: str) -> Token:
        if self.tok.kind != kind:
            raise self.error(f"expected {kind}")
        return self.next()

    def error(self, what: str) -> SpecError:
        return SpecError(
            f"pseudocode line {self.tok.line}: {what}, found {self.tok.text or 'the end'!r}"
        )

    # ---- statements

    def block(self, ends: tuple[str, ...]) -> ast.Block:
        out: list[ast.Statement] = []
        while self.accept(";"):
            pass
        while self.tok.kind != "end" and not self.sees(*ends):
            out.append(self.statement())
            while self.accept(";"):
                pass
        return tuple(out)

    def statement(self) -> ast.Statement:
        simple: dict[str, Callable[[], ast.Statement]] = {
            "if": self.if_else,
            "for": self.for_in,
            "while": self.while_do,
            "declare": self.declare,
        }
        if self.tok.kind == "string":
            return ast.Text(self.next().text.strip('"'))
        if self.tok.kind == "name" and self.tok.text in simple:
            word = self.next().text
            return simple[word]()
        if self.accept("break"):
            return ast.BreakLoop()
        if self.accept("return"):
            return ast.Return(self.expr())
        return self.matrix() or self.lambda_definition() or self.assign_or_call()

    def if_else(self) -> ast.IfElse:
        arms: list[tuple[ast.Node, ast.Block]] = []
        other: ast.Block = ()
        while True:
            cond = self.expr()
            self.expect("then")
            arms.append((cond, self.block(("elsif", "else", "endif"))))
            if not self.accept("elsif"):
                break
        if self.accept("else"):
            other = self.block(("endif",))
        self.expect("endif")
        return ast.IfElse(tuple(arms), other)

    def for_in(self) -> ast.ForIn:
        name = self.expect_kind("name").text
        self.expect("in")
        lo = self.binary(0)
        self.expect(":")
        hi = self.expr()
        self.expect("do")
        body = self.block(("endfor",))
        self.expect("endfor")
        return ast.ForIn(name, lo, hi, body)

    def while_do(self) -> ast.WhileDo:
        cond = self.expr()
        self.expect("do")
        body = self.block(("endwhile",))
        self.expect("endwhile")
        return ast.WhileDo(cond, body)

    def declare(self) -> ast.Declare:
        name = self.expect_kind("name").text
        self.expect(":")
        width, kind = self.expect_kind("cast").text.split("'")
        n = 0
        if self.accept("["):
            n = int(self.expect_kind("int").text)
            self.expect("]")
        return ast.Declare(name, int(width), kind, n)

    def matrix(self) -> ast.Matrix | None:
        words = [t.text for t in self.toks[self.at : self.at + 4]]
        if words != ["D", "=", "A", "("]:
            return None
        start = self.at
        rest: list[Token] = []
        while self.tok.kind != "end":
            rest.append(self.next())
        names = [t.text for t in rest if t.kind == "name"]
        if not any(t.kind == "dim" for t in rest):
            self.at = start
            return None
        return ast.Matrix("sparse" in names, names.count("D") == 2)

    def lambda_definition(self) -> ast.Lambda | None:
        if [t.text for t in self.toks[self.at + 1 : self.at + 3]] != ["=", "lambda"]:
            return None
        name = self.next().text
        self.at += 2
        self.expect("(")
        params: list[str] = []
        while not self.accept(")"):
            params.append(self.expect_kind("name").text)
            self.accept(",")
        self.expect("(")
        body: ast.Node | ast.Block
        if self.sees("if", "declare", "for", "return"):
            body = self.block((")",))
        else:
            body = self.expr()
            self.accept(";")
        self.expect(")")
        return ast.Lambda(name, tuple(params), body)

    def assign_or_call(self) -> ast.Statement:
        target = self.postfix()
        if isinstance(target, ast.Call) and not self.sees("=", "+=", "-="):
            return ast.Action(target)
        for op in ("+", "-"):
            if self.accept(op + "="):
                return ast.Assign((target,), self.expr(), op)
        self.expect("=")
        targets, value = [target], self.expr()
        while self.accept("="):
            targets.append(value)
            value = self.expr()
        return ast.Assign(tuple(targets), value)

    # ---- expressions

    def expr(self) -> ast.Node:
        test = self.binary(0)
        if not self.accept("?"):
            return test
        yes = self.expr()
        self.expect(":")
        return ast.Cond(test, yes, self.expr())

    def binary(self, level: int) -> ast.Node:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.tok.kind == "op" and self.tok.text in _LEVELS[level]:
            op = self.next().text
            left = ast.Binary(op, left, self.binary(level + 1))
        return left

    def unary(self) -> ast.Node:
        if self.tok.kind == "op" and self.tok.text in ("~", "!", "-", "+"):
            op = self.next().text
            return ast.Unary(op, self.unary())
        return self.postfix()

    def postfix(self) -> ast.Node:
        x = self.primary()
        while True:
            if self.accept("."):
                x = ast.Dot(x, self.expect_kind("name").text)
            elif self.accept("["):
                x = self.index(x)
            elif isinstance(x, ast.Name) and self.accept("("):
                x = ast.Call(x.name, self.items(")"))
            else:
                return x

    def index(self, base: ast.Node) -> ast.Node:
        first = self.binary(0)
        if self.accept("?"):
            yes = self.expr()
            self.expect(":")
            first = ast.Cond(first, yes, self.expr())
        x: ast.Node
        if self.accept(":"):
            x = ast.Slice(base, first, self.expr())
        elif self.accept("+:"):
            x = ast.Part(base, first, self.expr())
        else:
            x = ast.Index(base, first)
        self.expect("]")
        return x

    def items(self, end: str) -> tuple[ast.Node, ...]:
        out: list[ast.Node] = []
        while not self.accept(end):
            out.append(self.expr())
            if not self.sees(end):
                self.expect(",")
        return tuple(out)

    def primary(self) -> ast.Node:
        t = self.tok
        if t.kind in ("int", "real", "sized"):
            self.at += 1
            return literal(t.text)
        if t.kind == "cast":
            self.at += 1
            width, kind = t.text.split("'")
            self.expect("(")
            value = self.expr()
            self.expect(")")
            return ast.Cast(int(width), kind, value)
        if t.kind == "name" and t.text not in _KEYWORDS:
            self.at += 1
            return ast.Name(t.text)
        if self.accept("("):
            x = self.expr()
            self.expect(")")
            return x
        if self.accept("{"):
            return ast.Concat(self.items("}"))
        raise self.error("expected a value")


def literal(text: str) -> ast.Node:
    """`5`, `5U`, `0xffULL`, `1.0F`, `16'4`, `1'1U`, `16'0.5`, `8'0xff`."""
    width = 0
    if "'" in text:
        size, text = text.split("'")
        width = int(size)
    is_hex = text.startswith("0x")
    if "." in text:
        return ast.Real(text.rstrip("F"), width or (32 if text.endswith("F") else 0))
    digits = text.rstrip("UL")
    suffix = text[len(digits) :]
    kind = "U" if "U" in suffix else "I" if suffix else ""
    if width:
        return ast.Num(int(digits, 0), kind or "B", width, is_hex)
    width = 64 if "LL" in suffix else 32 if suffix else 0
    return ast.Num(int(digits, 0), kind, width, is_hex)
