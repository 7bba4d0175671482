"""From custom assembly to the generic form that MLIR parses, with a map of positions back to the user's text.

    %0 = mx.fold_scale %x, %f : <32x64xi8, block_size = 32, scale_type = f8E8M0FNU>, f32 -> !t

becomes

    %0 = "mx.fold_scale"(%x, %f) : (!mx.tensor<tensor<32x64xi8>, 32 : i64, f8E8M0FNU, 1 : i64>, f32) -> !t

The translation is a list of local edits. It leaves every line where it is, and everything that is not mx syntax as it
is, errors included: MLIR reports those, at positions that `Translation.position` takes back.
"""

from bisect import bisect_left

from mx_dialect.asm import operand_groups, operands, tile_body, type_body
from mx_dialect.asm.aliases import hidden_excess
from mx_dialect.asm.dictionary import RESULT_SEGMENT_SIZES, spelled_array
from mx_dialect.asm.lexer import (
    MAX_NESTING,
    Source,
    Token,
    Unbalanced,
    Unreadable,
    closing,
    expected,
    find,
    flat_type_end,
    resources_end,
    token_at,
    too_deep,
    type_end,
    without_comments,
)
from mx_dialect.asm.long_parts import slow_part
from mx_dialect.asm.operands import Operands, counted
from mx_dialect.asm.position_map import Edit, Translation
from mx_dialect.asm.table import (
    PREFIX,
    Arity,
    operation_table,
    type_names,
    unknown_operation,
    unknown_type,
)
from mx_dialect.asm.type_body import TypeSyntaxError, is_storage
from mx_dialect.diagnostics import Diagnostic, MxError

# More would be about one mistake.
MAX_ERRORS = 20

_BLANK = " \t\r\n"
_TENSOR = "!mx.tensor"
# The types with a custom spelling, and the module that reads each. MLIR reads the others as they are.
_CUSTOM_TYPES = {_TENSOR: type_body, "!mx.tile": tile_body}


def to_generic(text: str, source_name: str, *, stdin_name: str | None = None) -> Translation:
    """Translate custom mx syntax in `text`; `source_name` is for error positions only.

    `stdin_name`, if given, replaces the file name "-" in the locations that the user wrote.

    Raises:
        MxError: mx syntax that cannot be read, a type that breaks its rules, or what is too deep or too
            large for MLIR to parse.
    """
    _check_encoding(text, source_name)
    deep = too_deep(text)
    if deep is not None:
        raise MxError.of(Source(text, source_name).diagnostic(deep, f"more than {MAX_NESTING} levels of nesting"))
    excess = hidden_excess(text) or slow_part(text)
    if excess is not None:
        raise MxError.of(Source(text, source_name).diagnostic(*excess))
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
        self._bodies: dict[tuple[str, str], str | None] = {}
        self._invalid: list[Diagnostic] = []

    def read(self) -> None:
        """Collect the edits of the whole text.

        Raises:
            MxError: the first syntax error, and the distinct invalid types before it.
        """
        try:
            self._scan(0, len(self._text), operations=True)
        except Unreadable as failure:
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
            raise Unreadable(token.start, unknown_type(name))
        if token.text not in _CUSTOM_TYPES:
            return token.end
        opened = token_at(self._text, token.end)
        if opened.text != "<":
            raise Unreadable(token.start, f"expected '<' after '{token.text}'")
        return self._parametrized(token.text, token.start, opened.start)

    def _parametrized(self, name: str, start: int, opened: int) -> int:
        """Translate the mx type of this name that starts at `start` and opens its body at `opened`; return its end."""
        try:
            end = closing(self._text, opened)
        except Unbalanced:
            raise Unreadable(start, "the '<' of this type is never closed") from None
        body = without_comments(self._text[opened + 1 : end - 1])
        key = (name, body)
        if key not in self._bodies:
            # Each distinct type is judged, and reported, where it first occurs.
            self._bodies[key] = self._judge(name, start, body)
        storage = self._bodies[key]
        if storage is not None:
            self._replace(start, end, storage)
        return end

    def _judge(self, name: str, start: int, body: str) -> str | None:
        """Return the storage spelling of a type, or None to leave it as written, because it is that or is wrong."""
        custom = not is_storage(body)
        syntax = _CUSTOM_TYPES[name]
        try:
            spec = syntax.parse_custom(body, self._aliases) if custom else syntax.parse_storage(body)
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
            raise Unreadable(word.start, unknown_operation(name))
        form = (operand_groups if arity.groups else operands).read(self._text, word, arity)
        for start, end, replacement in form.edits:
            self._replace(start, end, replacement)
        begun = len(self.edits)
        token = token_at(self._text, form.end)
        has_dictionary = token.text == "{"
        end = self._attributes(name, token, bool(form.attributes)) if has_dictionary else form.end
        token = token_at(self._text, end)
        if token.text != ":":
            hint = "; regions and successors need the generic form" if token.text in ("(", "[") else ""
            raise expected(self._text, token, end, f"':' and the types of {name}{hint}")
        end, results = self._signature(name, token, form, arity.results)
        if form.attributes:
            more = _result_segments(word, results, arity)
            closed = "" if has_dictionary else "}"
            self.edits.insert(begun, Edit(form.end, form.end, f" {{{form.attributes}{more}{closed}"))
        return end

    def _attributes(self, name: str, opened: Token, begun: bool) -> int:
        """Translate the types in an attribute dictionary, and return its end; `begun` joins it to one before it."""
        try:
            end = closing(self._text, opened.start)
        except Unbalanced:
            raise Unreadable(opened.start, f"the attributes of {name} are never closed") from None
        if begun:
            is_empty = token_at(self._text, opened.end).text == "}"
            self._replace(opened.start, opened.end, "" if is_empty else ", ")
        self._scan(opened.end, end, operations=False)
        return end

    def _signature(self, name: str, colon: Token, form: Operands, results: int | None) -> tuple[int, int]:
        """Translate `: T1, T2 -> T3` into a function type, with the indices of lists.

        Return its end, and how many results it has.
        """
        end = self._operand_types(name, colon, form)
        arrow = token_at(self._text, end)
        if arrow.text != "->":
            if results:
                raise expected(self._text, arrow, end, f"'->' and the result type of {name}")
            self._insert(end, " -> ()")
            return end, 0
        token = token_at(self._text, arrow.end)
        if token.text == "(":
            count, end = self._results_in_parentheses(token)
        else:
            count, end = 1, self._listed_type(token)
        if results is not None and count != results:
            hint = "; write several as (T1, T2)" if results > 1 else ""
            message = f"{name} has {counted(results, 'result')} but {counted(count, 'result type')}{hint}"
            raise Unreadable(token.start, message)
        return end, count

    def _operand_types(self, name: str, colon: Token, form: Operands) -> int:
        """Put the operand types in parentheses, those of indices with them, and return their end."""
        first = token_at(self._text, colon.end)
        if not form.types:
            if first.text == "(":
                last = token_at(self._text, first.end)
                if last.text != ")":
                    raise Unreadable(last.start, f"{name} has no operands but operand types")
                return last.end
            self._insert(colon.end, " ()")
            return colon.end
        self._insert(first.start, "(")
        count, end = 1, self._listed_type(first)
        while (token := token_at(self._text, end)).text == ",":
            count, end = count + 1, self._listed_type(token_at(self._text, token.end))
        if count != form.types:
            hint = "; write them without parentheses" if first.text == "(" else ""
            message = f"{name} has {counted(form.types, 'operand')} but {counted(count, 'operand type')}{hint}"
            raise Unreadable(first.start, message)
        self._insert(end, ", index" * form.indices + ")")
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
                raise expected(self._text, token, end, "',' or ')' in the list of result types")
        return count, token.end

    def _listed_type(self, token: Token) -> int:
        """Translate the type that starts with `token` in an mx operation's type list, and return its end."""
        if token.text == "<":
            return self._parametrized(_TENSOR, token.start, token.start)
        end = flat_type_end(self._text, token.start)
        if end is not None:
            return end
        try:
            end = type_end(self._text, token)
        except Unbalanced as unbalanced:
            raise Unreadable(unbalanced.opened, str(unbalanced)) from None
        if end is None:
            raise Unreadable(token.start, "expected a type")
        self._scan(token.start, end, operations=False)
        return end

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


def _result_segments(word: Token, results: int, arity: Arity) -> str:
    """Return the entry that results in slots add to a dictionary."""
    if not arity.result_slots:
        return ""
    if results > arity.result_slots:
        raise Unreadable(word.start, f"{word.text} gives at most {arity.result_slots} results, got {results}")
    segments = [1] * results + [0] * (arity.result_slots - results)
    return f", {RESULT_SEGMENT_SIZES} = {spelled_array('i32', segments)}"
