"""Random modules in both spellings, and contexts that read them."""

import random

from hypothesis import strategies as st

from mx_dialect import dialect

SEEDS = st.integers(0, 2**64 - 1)
DYNAMIC = -(2**63)
SPACES = ("vec", "mat", "left", "right", "acc", "bias", "left_scale", "right_scale")
ELEMENTS = ("f8E5M2", "f8E4M3FN", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", "i8")
STRINGS = ("mx.compose", r"\22mx.compose\22(%a)", "!mx.tensor<", "//", "é", r"\\", "{-#", "")
FILE = "user.mlir"


def lenient_context():
    """Return a context that takes operations of dialects that it does not know."""
    context = dialect.load()
    context.allow_unregistered_dialects = True
    return context


class Type:
    """A type in both spellings; mx tensors know their parts, types with a custom spelling their name."""

    def __init__(self, custom, storage=None, parts=(), shape=(), name=None):
        self.custom, self.storage = custom, storage or custom
        self.parts, self.shape = parts, shape
        self.name = "!mx.tensor" if parts else name


def tensor(shape, element):
    return Type("tensor<" + "".join(f"{e}x" for e in shape) + element + ">", shape=shape)


F32, I1, I32, INDEX, TASK = (Type(name) for name in ("f32", "i1", "i32", "index", "!mx.task"))


def array(kind, numbers):
    return f"array<{kind}: {', '.join(map(str, numbers))}>" if numbers else f"array<{kind}>"


class Generator:
    """Writes one random module."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.custom: list[str] = []
        self.storage: list[str] = []
        # Offset in the custom text of each operation's name, by the number in its `test.id` attribute; None where a
        # location is written out.
        self.places: dict[int, int | None] = {}
        self.length = 0
        self.names = 0
        self.aliases: dict[str, str] = {}

    # Text

    def blank(self):
        """Return random space between two tokens."""
        chance = self.random.random()
        if chance < 0.6:
            return " "
        return self.random.choice(["  ", "\n", "\t", "\r\n", " // é mx.a (\n", "\n\n", "//\n", ' // "\n'])

    def write(self, *tokens):
        """Write tokens to both texts; a pair has a spelling for each."""
        for token in tokens:
            custom, storage = token if isinstance(token, tuple) else (token, token)
            for piece in (custom, self.blank()):
                self.custom.append(piece)
                self.length += len(piece)
            self.storage += [storage, " "]

    def only_custom(self, *tokens):
        self.write(*((token, "") for token in tokens))

    def only_storage(self, *tokens):
        self.storage += [f"{token} " for token in tokens]

    def comma(self, index):
        if index:
            self.write(",")

    # Types

    def mx_tensor(self):
        pick = self.random
        rank = pick.choice([1, 2, 2, 2, 3])
        axis = pick.randrange(rank)
        block = pick.choice([1, 2, 16, 32])
        element = pick.choice(ELEMENTS)
        shape = [pick.choice(["?", "0", "3", "8"]) for _ in range(rank)]
        scale_shape = list(shape)
        blocks = pick.choice(["?", "0", "1", "2"])
        shape[axis] = "?" if blocks == "?" else str(int(blocks) * block)
        scale_shape[axis] = blocks
        dims = "".join(f"{e}x" for e in shape)
        keys = [f"block_size = {block}", "scale_type = f8E8M0FNU"]
        if axis != rank - 1 or pick.random() < 0.2:
            keys.append(f"axis = {axis}")
        custom = f"!mx.tensor<{', '.join([dims + element, *keys])}>"
        storage = f"!mx.tensor<tensor<{dims}{element}>, {block} : i64, f8E8M0FNU, {axis} : i64>"
        return Type(custom, storage, (tensor(shape, element), tensor(scale_shape, "f8E8M0FNU")), shape)

    def tile(self, window=None, element=None, valid=None, space=None):
        """Return a tile type; None is a random parameter, an empty `space` or `valid` the default."""
        pick = self.random
        shape = window or [pick.choice(["?", "0", "16"]), pick.choice(["?", "2", "64"])]
        element = element or pick.choice(["f8E4M3FN", "f8E8M0FNU", "ui8", "bf16"])
        space = pick.choice(["", *SPACES]) if space is None else space
        valid = valid or pick.choice([shape, ["?" if e == "?" or pick.random() < 0.5 else "0" for e in shape]])
        extents = ", ".join(str(DYNAMIC) if e == "?" else e for e in valid)
        dims = "".join(f"{e}x" for e in shape) + element
        keys = [*([space] if space else []), *([f"valid = {'x'.join(valid)}"] if valid != shape else [])]
        storage = f'!mx.tile<tensor<{dims}>, "{space or "undecided"}", [{extents}]>'
        return Type(f"!mx.tile<{', '.join([dims, *keys])}>", storage, shape=shape, name="!mx.tile")

    def relaid(self, type_, short):
        """Return one way to write an mx type that has a custom spelling."""
        pick = self.random
        chance = pick.random()
        if chance < 0.1:
            return type_.storage
        alias = self.aliases.get(type_.storage)
        if alias is not None and chance < 0.3:
            return alias
        body = type_.custom.removeprefix(f"{type_.name}<").removesuffix(">")
        first, *keys = body.split(", ")
        pick.shuffle(keys)
        keys = [key.replace(" = ", pick.choice(["=", " = ", "= ", f"{self.blank()}={self.blank()}"])) for key in keys]
        body = pick.choice([",", ", ", f"{self.blank()},{self.blank()}"]).join([first, *keys])
        space = self.blank() if chance < 0.5 else ""
        head = "" if short and chance < 0.8 and type_.parts else type_.name
        return f"{head}{space if head else ''}<{space}{body}{space}>"

    def type(self, type_, short=False):
        custom = self.relaid(type_, short) if type_.name else type_.custom
        self.write((custom, type_.storage))

    # Operations

    def name(self):
        self.names += 1
        return self.random.choice(["%{}", "%v{}", "%mx.{}", "%a-{}.b"]).format(self.names)

    def attributes(self, *given, hidden=()):
        """Write an attribute dictionary that ends in the operation's number; what is hidden only in storage form."""
        self.write("{")
        for attribute in hidden:
            self.only_storage(attribute, ",")
        for attribute in given:
            self.write(attribute, ",")
        pick = self.random
        if pick.random() < 0.3:
            self.write("mx.flag", ",")
        if pick.random() < 0.3:
            self.write("mx.text", "=", f'"{pick.choice(STRINGS)}"', ",")
        if pick.random() < 0.3:
            self.write("mx.types", "=", "[", "tuple<")
            self.type(self.mx_tensor())
            self.write(",", "i32", ">", ",", "(")
            self.type(self.mx_tensor())
            self.write(")", "->", "f32", "]", ",")
        self.write("test.id", "=", str(len(self.places) - 1), "}")

    def place(self):
        """Note that the next token is an operation's name."""
        self.places[len(self.places)] = self.length

    def operation(self, name, operands, results, *attributes, lists=(), groups=()):
        """Write one operation in its custom form, or sometimes in generic form; return the result values.

        Each of `lists` is (attribute, entries, may be left out), an entry text or a value of type index; each of
        `groups` is (keyword, how many slots, how many operands).
        """
        values = []
        if len(results) == 1:
            values = [self.name()]
            self.write(values[0], "=")
        elif results:
            base = self.name()
            values = [f"{base}#{i}" for i in range(len(results))]
            self.write(base, ":", str(len(results)), "=")
        self.place()
        plain = not name.startswith("mx.") or self.random.random() < 0.1
        indices = [e for _, entries, _ in lists for e in entries if isinstance(e, tuple)]
        hidden = self.hidden(operands, results, lists, groups)
        if plain:
            self.write(f'"{name}"', "(")
        else:
            self.write((name, f'"{name}"('))
        if plain or not groups:
            for index, (value, _) in enumerate([*operands, *(indices if plain else [])]):
                self.comma(index)
                self.write(value)
        self.write(")") if plain else self.in_custom_form(operands, lists, groups)
        if plain:
            self.attributes(*hidden, *attributes)
        else:
            self.attributes(*attributes, hidden=hidden)
        self.write(":")
        self.write("(") if plain else self.only_storage("(")
        if not plain and not operands:
            self.only_custom("(", ")")
        for index, (_, type_) in enumerate([*operands, *(indices if plain else [])]):
            self.comma(index)
            self.type(type_, short=not plain)
        self.write(")") if plain else self.only_storage(*(", index" for _ in indices), ")")
        parenthesised = plain or len(results) != 1 or self.random.random() < 0.2
        self.write("->", *["("] * parenthesised)
        for index, type_ in enumerate(results):
            self.comma(index)
            self.type(type_, short=not plain)
        self.write(*[")"] * parenthesised)
        if self.random.random() < 0.1:
            self.places[len(self.places) - 1] = None
            self.write("loc", "(", '"mx.compose"', "(", '"-"', ":", "1", ":", "2", ")", ")")
        return list(zip(values, results, strict=True))

    def hidden(self, operands, results, lists, groups):
        """Return the attributes that only the generic form has."""
        if groups:
            sizes = [
                n for _, slots, count in groups for n in ([1] * count + [0] * (slots - count) if slots else [count])
            ]
            self.callee = self.random.choice(["@kernel", '@"mx.a (%b)"', "@mx.submit", "@_$.a"])
            slots = [1] * len(results) + [0] * (16 - len(results))
            return [
                f"operandSegmentSizes = {array('i32', sizes)}",
                f"callee = {self.callee}",
                f"resultSegmentSizes = {array('i32', slots)}",
            ]
        if not lists:
            return []
        counts = [1] * len(operands) + [sum(isinstance(e, tuple) for e in entries) for _, entries, _ in lists]
        numbers = [(a, [DYNAMIC if isinstance(e, tuple) else e for e in entries]) for a, entries, _ in lists]
        return [
            f"operandSegmentSizes = {array('i32', counts)}",
            *(f"{attribute} = {array('i64', entries)}" for attribute, entries in numbers),
        ]

    def in_custom_form(self, operands, lists, groups):
        """Write what custom form has behind the operands, or instead of them, and the end of the generic operands."""
        for _, entries, optional in lists:
            if optional and not entries and self.random.random() < 0.8:
                continue
            self.only_custom("[")
            for index, entry in enumerate(entries):
                self.only_custom(*[","] * bool(index), entry[0] if isinstance(entry, tuple) else entry)
            self.only_custom("]")
        self.only_storage(*(f", {e[0]}" for _, entries, _ in lists for e in entries if isinstance(e, tuple)))
        if groups:
            self.only_custom(self.callee)
        waiting = iter(operands)
        for keyword, _, count in groups:
            if keyword and not count and self.random.random() < 0.8:
                continue
            self.only_custom(*[keyword] * bool(keyword), "(")
            for index in range(count):
                self.only_custom(*[","] * bool(index), next(waiting)[0])
            self.only_custom(")")
        if groups:
            self.only_storage(", ".join(value for value, _ in operands))
        self.only_storage(")")

    def numbers(self, count, most):
        """Return entries of an index list, and what each is in a type."""
        entries = [
            self.source(INDEX) if self.random.random() < 0.3 else str(self.random.choice(most)) for _ in range(count)
        ]
        return entries, ["?" if isinstance(e, tuple) else e for e in entries]

    def load(self):
        """Write an mx.tile_load."""
        pick = self.random
        element = pick.choice(["f8E4M3FN", "f8E8M0FNU", "bf16"])
        source = self.source(tensor(("64", pick.choice(["64", "?"])), element))
        offsets, _ = self.numbers(2, [0, 16, 32])
        window, shape = self.numbers(2, [16, 32])
        valid, part = self.numbers(2, [0, 8, 16]) if pick.random() < 0.5 else ([], shape)
        space = pick.choice(["", "mat", "vec"])
        target = [f'target = "{space}"'] if space else []
        lists = [("static_offsets", offsets, False), ("static_window", window, False), ("static_valid", valid, True)]
        type_ = self.tile(shape, element, part, space)
        return self.operation("mx.tile_load", [source], [type_], *target, lists=lists)

    def view(self):
        """Write an mx.tensor_view of bytes as scales in a layout."""
        rows, [extent] = self.numbers(1, [32, 64])
        layout = self.random.choice(["MX_A_ZZ", "MX_B_NN"])
        scales = Type(f'tensor<{extent}x4xui8, #mx.layout<"{layout}">>')
        count = "?" if extent == "?" else str(4 * int(extent))
        source = self.source(tensor(("1", count), "ui8"))
        return self.operation("mx.tensor_view", [source], [scales], lists=[("static_sizes", [*rows, "4"], False)])

    def submit(self, values):
        """Write an mx.submit on any values."""
        pick = self.random
        arguments = pick.choices(values, k=pick.choice([0, 0, 1, 2, 5])) if values else []
        tasks = [self.source(TASK) for _ in range(pick.randrange(3))]
        cores, condition = ([self.source(t)] * pick.randrange(2) for t in (INDEX, I1))
        groups = [
            ("", 64, len(arguments)),
            ("after", 0, len(tasks)),
            ("cores", 0, len(cores)),
            ("if", 0, len(condition)),
        ]
        results = [self.random.choice([self.mx_tensor(), self.tile(), F32, I32]) for _ in range(pick.randrange(3))]
        results += [TASK] * pick.randrange(2)
        flags = pick.choice([(), ("sync_start",)])
        return self.operation("mx.submit", [*arguments, *tasks, *cores, *condition], results, *flags, groups=groups)

    def step(self, values):
        """Write one random operation on known values."""
        pick = self.random
        tensors = [v for v in values if v[1].parts]
        kind = pick.randrange(12)
        if kind >= 8:
            cast = [self.tile(["16", "?"], e, ["8", "?"]) for e in ("f4E2M1FN", "f8E4M3FN")]
            return {
                8: lambda: self.operation("mx.tile_cast", [self.source(cast[0])], [cast[1]]),
                9: self.load,
                10: self.view,
                11: lambda: self.submit(values),
            }[kind]()
        if kind == 0:
            result = self.mx_tensor()
            source = self.source(tensor(result.shape, pick.choice(["f32", "f16", "bf16"])))
            rounding = pick.choice([(), ('rounding = "even"',)])
            return self.operation("mx.quantize_block", [source], [result], *rounding)
        if kind == 1:
            result = self.mx_tensor()
            return self.operation("mx.compose", [self.source(part) for part in result.parts], [result])
        if kind == 2:
            element = pick.choice(ELEMENTS)
            lhs = Type(
                f"!mx.tensor<4x32x{element}, block_size = 16, scale_type = f8E8M0FNU>",
                f"!mx.tensor<tensor<4x32x{element}>, 16 : i64, f8E8M0FNU, 1 : i64>",
                (tensor(("4", "32"), element), tensor(("4", "2"), "f8E8M0FNU")),
                ("4", "32"),
            )
            acc = tensor(("4", "8"), "f32")
            operands = [self.source(lhs), self.source(tensor(("32", "8"), "f16")), self.source(acc)]
            return self.operation("mx.block_matmul", operands, [acc])
        if not tensors:
            return []
        value = pick.choice(tensors)
        if kind == 3:
            return self.operation("mx.dequantize_block", [value], [tensor(value[1].shape, "f32")])
        if kind == 4:
            return self.operation("mx.fold_scale", [value, self.source(F32)], [value[1]])
        if kind == 5:
            return self.operation("mx.decompose", [value], list(value[1].parts))
        if kind == 6:
            return self.branch(value, values)
        return self.operation("test.mx", pick.sample(values, min(2, len(values))), [value[1]])

    def source(self, type_):
        """Write an operation that gives a value of any type."""
        return self.operation("test.source", [], [type_])[0]

    def branch(self, value, values):
        """Write an scf.if that gives a value, operations inside."""
        condition = self.source(I1)
        name = self.name()
        self.write(name, "=", "scf.if", condition[0], "->", "(")
        self.type(value[1])
        self.write(")", "{")
        for index in range(2):
            if index:
                self.write("}", "else", "{")
            self.block(list(values), self.random.randrange(2))
            self.write("scf.yield", value[0], ":")
            self.type(value[1])
        self.write("}")
        return [(name, value[1])]

    def block(self, values, size):
        for _ in range(size):
            values += self.step(values)

    def function(self, index):
        arguments = [(self.name(), self.random.choice([self.mx_tensor(), self.tile(), F32, I32])) for _ in range(2)]
        self.write("func.func", f"@mx.f{index}", "(")
        for i, (value, type_) in enumerate(arguments):
            self.comma(i)
            self.write(value, ":")
            self.type(type_)
        self.write(")", "->")
        self.type(arguments[0][1])
        self.write("{")
        self.block(list(arguments), self.random.randrange(6))
        self.write("return", arguments[0][0], ":")
        self.type(arguments[0][1])
        self.write("}")

    def module(self):
        """Return the custom and the storage text."""
        for index in range(self.random.randrange(3)):
            type_ = self.random.choice([self.mx_tensor, self.tile])()
            self.write(f"!mx_{index}", "=")
            self.type(type_)
            self.aliases[type_.storage] = f"!mx_{index}"
        for index in range(self.random.randrange(1, 3)):
            self.function(index)
        return "".join(self.custom), "".join(self.storage)


def generic(module):
    return module.operation.get_asm(print_generic_op_form=True, assume_verified=True)
