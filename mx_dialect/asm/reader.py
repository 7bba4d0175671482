"""From custom assembly to the generic form that MLIR parses, with a map of positions back to the user's text.

    %0 = mx.fold_scale %x, %f : <32x64xi8, block_size = 32, scale_type = f8E8M0FNU>, f32 -> !t

becomes

    %0 = "mx.fold_scale"(%x, %f) : (!mx.tensor<tensor<32x64xi8>, 32 : i64, f8E8M0FNU, 1 : i64>, f32) -> !t

The translation is a list of local edits. It leaves every line where it is, and everything that is not mx syntax as it
is, errors included: MLIR reports those, at positions that `Translation.position` takes back.
"""

from bisect import bisect_left

from mx_dialect.asm import index_lists
from mx_dialect.asm.index_lists import IndexLists, ListSyntaxError
from mx_dialect.asm.lexer import (
    MAX_NESTING,
    Source,
    Token,
    Unbalanced,
    closing,
    find,
    flat_type_end,
    resources_end,
    token_at,
    too_deep,
    type_end,
    without_comments,
)
from mx_dialect.asm.position_map import Edit, Translation
from mx_dialect.asm.table import (
    PREFIX,
    Arity,
    operation_table,
    type_names,
    unknown_operation,
    unknown_type,
)
from mx_dialect.asm.type_body import TypeSyntaxError, is_storage, parse_custom, parse_storage
from mx_dialect.diagnostics import Diagnostic, MxError

# More would be about one mistake.
MAX_ERRORS = 20

_BLANK = " \t\r\n"
_TENSOR = "!mx.tensor"


def to_generic(text: str, source_name: str, *, stdin_name: str | None = None) -> Translation:
    """Translate custom mx syntax in `text`; `source_name` is for error positions only.

    `stdin_name`, if given, replaces the file name "-" in the locations that the user wrote.

    Raises:
        MxError: mx syntax that cannot be read, a type that breaks its rules, or nesting deeper than MLIR can parse.
    """
    _check_encoding(text, source_name)
    deep = too_deep(text)
    if deep is not None:
        raise MxError.of(Source(text, source_name).diagnostic(deep, f"more than {MAX_NESTING} levels of nesting"))
    if PREFIX not in text and (stdin_name is None or '"-"' not in text):
        return Translation(text)
    reader = _Reader(Source(text, source_name), stdin_name)
    reader.read()
    return Translation(text, reader.edits)


def _check_encoding(text: str, source_name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = Source(text, source_name).diagnostic(error.start, "the text is not valid Unicode")
        raise MxError.of(found) from None


class _Failure(Exception):
    """The text at `offset` cannot be read."""

    def __init__(self, offset: int, message: str):
        super().__init__(message)
        self.offset = offset


class _Reader:
    """One pass over a text, collecting edits in order."""

    def __init__(self, source: Source, stdin_name: str | None):
        self.edits: list[Edit] = []
        self._source = source
        self._text = source.text
        self._stdin_name = stdin_name
        self._operations = operation_table()
        self._types = set(type_names())
        self._aliases: dict[str, str] = {}
        self._comments: list[tuple[int, int]] = []
        # The storage spelling of each type body, None to leave what the user wrote.
        self._bodies: dict[str, str | None] = {}
        self._invalid: list[Diagnostic] = []

    def read(self) -> None:
        """Collect the edits of the whole text.

        Raises:
            MxError: the first syntax error, and the distinct invalid types before it.
        """
        try:
            self._scan(0, len(self._text), operations=True)
        except _Failure as failure:
            self._invalid.append(self._source.diagnostic(failure.offset, str(failure)))
        if self._invalid:
            raise MxError.of(*self._invalid)

    def _scan(self, start: int, end: int, *, operations: bool) -> None:
        """Translate types, and operations if asked, between two positions."""
        position = start
        while (found := find(self._text, position, end)) is not None:
            position = found.end
            if found.kind == "comment":
                self._comments.append((found.start, found.end))
            elif found.kind == "string":
                self._location(found)
            elif found.kind == "resources":
                position = resources_end(self._text, position)
            elif found.kind == "type":
                position = self._type(found)
            elif operations and self._is_operation(found):
                position = self._operation(found)

    # Types

    def _type(self, token: Token) -> int:
        """Translate a type that starts with `!`, and return where to go on."""
        name = token.text[1:]
        if not name.startswith(PREFIX):
            following = token_at(self._text, token.end)
            if following.text == "=":
                meaning = token_at(self._text, following.end).text
                self._aliases[token.text] = self._aliases.get(meaning, meaning)
            return token.end
        if name not in self._types:
            raise _Failure(token.start, unknown_type(name))
        if token.text != _TENSOR:
            return token.end
        opened = token_at(self._text, token.end)
        if opened.text != "<":
            raise _Failure(token.start, f"expected '<' after '{_TENSOR}'")
        return self._tensor(token.start, opened.start)

    def _tensor(self, start: int, opened: int) -> int:
        """Translate the mx tensor type that starts at `start` and whose body opens at `opened`; return its end."""
        try:
            end = closing(self._text, opened)
        except Unbalanced:
            raise _Failure(start, "the '<' of this type is never closed") from None
        body = without_comments(self._text[opened + 1 : end - 1])
        if body not in self._bodies:
            # Each distinct type is judged, and reported, where it first occurs.
            self._bodies[body] = self._judge(start, body)
        storage = self._bodies[body]
        if storage is not None:
            self._replace(start, end, storage)
        return end

    def _judge(self, start: int, body: str) -> str | None:
        """Return the storage spelling of a type, or None to leave it as written, because it is that or is wrong."""
        custom = not is_storage(body)
        try:
            spec = parse_custom(body, self._aliases) if custom else parse_storage(body)
        except TypeSyntaxError as error:
            self._report(start, str(error))
            return None
        if spec is None:
            # Storage spelling in disguise (aliases, hexadecimal numbers) is checked when MLIR has parsed it.
            return None
        error = spec.error()
        if error is not None:
            self._report(start, f"invalid type '{spec.custom()}': {error}")
            return None
        return spec.storage() if custom else None

    def _report(self, start: int, message: str) -> None:
        """Note an invalid type and go on, up to a number of them."""
        self._invalid.append(self._source.diagnostic(start, message))
        if len(self._invalid) == MAX_ERRORS:
            raise MxError.of(*self._invalid)

    # Operations

    def _is_operation(self, word: Token) -> bool:
        """Tell an operation's name from an attribute's name, a resource key and the like."""
        text = self._text
        before = self._before(word.start)
        last = text[before - 1 : before]
        if last == "=":
            return self._ends_in_result(before - 1)
        if last in ("<", "(", "[", ",") or text[before - 2 : before] == "->":
            return False
        return last != "{" or token_at(text, word.end).text not in ("=", ",", "}")

    def _before(self, position: int) -> int:
        """Return the end of the last token before a position, whitespace and comments skipped."""
        comment = bisect_left(self._comments, (position,)) - 1
        while True:
            while position and self._text[position - 1] in _BLANK:
                position -= 1
            if comment < 0 or not self._comments[comment][0] < position <= self._comments[comment][1]:
                return position
            position = self._comments[comment][0]
            comment -= 1

    def _ends_in_result(self, position: int) -> bool:
        """Tell whether the text before an equals sign ends in `%name` or in the `:2` of `%name:2`."""
        end = self._before(position)
        start = end
        while start and (self._text[start - 1].isalnum() or self._text[start - 1] in "_$.-"):
            start -= 1
        if self._text[start - 1 : start] == "%":
            return True
        counted = self._before(start)
        return self._text[start:end].isdigit() and self._text[counted - 1 : counted] == ":"

    def _operation(self, word: Token) -> int:
        """Translate the operation whose name is `word`, and return its end."""
        name = word.text
        arity = self._operations.get(name)
        if arity is None:
            raise _Failure(word.start, unknown_operation(name))
        first = token_at(self._text, word.end)
        operands, end, token = self._operands(name, word.end, first)
        if arity.operands is not None and operands != arity.operands:
            raise _Failure(word.start, f"{name} takes {_count(arity.operands, 'operand')}, got {operands}")
        if operands:
            self._replace(word.start, first.start, f'"{name}"(')
        else:
            self._replace(word.start, word.end, f'"{name}"(')
        lists = None
        if arity.lists:
            lists = self._lists(name, end, arity)
            values = ", ".join(lists.values)
            given = f" {{{lists.attributes(arity, operands)}"
            self._replace(end, lists.end, f"{', ' if operands and values else ''}{values}){given}")
            end = lists.end
            token = token_at(self._text, end)
            if token.text != "{":
                self._insert(end, "}")
        else:
            self._insert(end, ")")
        if token.text == "{":
            if lists is not None:
                self._merge(token)
            end = self._attributes(name, token)
            token = token_at(self._text, end)
        if token.text != ":":
            hint = "; regions and successors need the generic form" if token.text in ("(", "[") else ""
            raise self._expected(token, end, f"':' and the types of {name}{hint}")
        return self._signature(name, token, operands, arity.results, 0 if lists is None else len(lists.values))

    def _lists(self, name: str, end: int, arity: Arity) -> IndexLists:
        try:
            return index_lists.read(self._text, end, name, arity)
        except ListSyntaxError as error:
            raise _Failure(error.offset, str(error)) from None

    def _merge(self, opened: Token) -> None:
        """Join an attribute dictionary to the one that was begun for index lists."""
        is_empty = token_at(self._text, opened.end).text == "}"
        self._replace(opened.start, opened.end, "" if is_empty else ", ")

    def _operands(self, name: str, end: int, token: Token) -> tuple[int, int, Token]:
        """Return how many operands start at `token`, where they end (`end` if there are none), and the token after."""
        count = 0
        if token.text == "(":
            raise _Failure(token.start, f"expected operands of {name} without parentheses, or its name in quotes")
        while token.kind == "value":
            count, end = count + 1, token.end
            token = token_at(self._text, end)
            if token.text[:1] == "#" and token.text[1:].isdecimal():
                end = token.end
                token = token_at(self._text, end)
            if token.text != ",":
                break
            comma = token.end
            token = token_at(self._text, comma)
            if token.kind != "value":
                raise self._expected(token, comma, f"an operand of {name} after ','")
        return count, end, token

    def _attributes(self, name: str, opened: Token) -> int:
        """Translate the types in an attribute dictionary, and return its end."""
        try:
            end = closing(self._text, opened.start)
        except Unbalanced:
            raise _Failure(opened.start, f"the attributes of {name} are never closed") from None
        self._scan(opened.start, end, operations=False)
        return end

    def _signature(self, name: str, colon: Token, operands: int, results: int | None, indices: int) -> int:
        """Translate `: T1, T2 -> T3` into a function type, with the indices of lists, and return its end."""
        end = self._operand_types(name, colon, operands, indices)
        arrow = token_at(self._text, end)
        if arrow.text != "->":
            if results:
                raise self._expected(arrow, end, f"'->' and the result type of {name}")
            self._insert(end, " -> ()")
            return end
        token = token_at(self._text, arrow.end)
        if token.text == "(":
            count, end = self._results_in_parentheses(token)
        else:
            count, end = 1, self._listed_type(token)
        if results is not None and count != results:
            hint = "; write several as (T1, T2)" if results > 1 else ""
            message = f"{name} has {_count(results, 'result')} but {_count(count, 'result type')}{hint}"
            raise _Failure(token.start, message)
        return end

    def _operand_types(self, name: str, colon: Token, operands: int, indices: int) -> int:
        """Put the operand types in parentheses, those of indices with them, and return their end."""
        first = token_at(self._text, colon.end)
        if not operands:
            if first.text == "(":
                last = token_at(self._text, first.end)
                if last.text != ")":
                    raise _Failure(last.start, f"{name} has no operands but operand types")
                return last.end
            self._insert(colon.end, " ()")
            return colon.end
        self._insert(first.start, "(")
        count, end = 1, self._listed_type(first)
        while (token := token_at(self._text, end)).text == ",":
            count, end = count + 1, self._listed_type(token_at(self._text, token.end))
        if count != operands:
            hint = "; write them without parentheses" if first.text == "(" else ""
            message = f"{name} has {_count(operands, 'operand')} but {_count(count, 'operand type')}{hint}"
            raise _Failure(first.start, message)
        self._insert(end, ", index" * indices + ")")
        return end

    def _results_in_parentheses(self, opened: Token) -> tuple[int, int]:
        """Translate a parenthesised list of result types; return their number and the list's end."""
        count = 0
        token = token_at(self._text, opened.end)
        while token.text != ")":
            count, end = count + 1, self._listed_type(token)
            token = token_at(self._text, end)
            if token.text == ",":
                token = token_at(self._text, token.end)
            elif token.text != ")":
                raise self._expected(token, end, "',' or ')' in the list of result types")
        return count, token.end

    def _listed_type(self, token: Token) -> int:
        """Translate the type that starts with `token` in an mx operation's type list, and return its end."""
        if token.text == "<":
            return self._tensor(token.start, token.start)
        end = flat_type_end(self._text, token.start)
        if end is not None:
            return end
        try:
            end = type_end(self._text, token)
        except Unbalanced as unbalanced:
            raise _Failure(unbalanced.opened, str(unbalanced)) from None
        if end is None:
            raise _Failure(token.start, "expected a type")
        self._scan(token.start, end, operations=False)
        return end

    def _expected(self, token: Token, previous_end: int, what: str) -> _Failure:
        """Return the error for a token where another was due; at the end of the line before if it starts a line."""
        starts_line = token.kind == "end" or "\n" in self._text[previous_end : token.start]
        return _Failure(previous_end if starts_line else token.start, f"expected {what}")

    # Edits

    def _location(self, string: Token) -> None:
        """Rename the file "-" in a location that the user wrote, so that it differs from MLIR's own name for text."""
        if self._stdin_name is None or string.text != '"-"':
            return
        colon = token_at(self._text, string.end)
        if colon.text == ":" and token_at(self._text, colon.end).kind == "number":
            self._replace(string.start, string.end, f'"{self._stdin_name}"')

    def _insert(self, position: int, text: str) -> None:
        self.edits.append(Edit(position, position, text))

    def _replace(self, start: int, end: int, text: str) -> None:
        """Replace text by a line of text, and keep the number of lines."""
        self.edits.append(Edit(start, end, text + "\n" * self._text.count("\n", start, end)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
