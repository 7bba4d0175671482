"""mx_dialect in a flow of somebody else's: contexts, pass managers, pattern sets, text and bytecode."""

import gc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mx_dialect
from mx_dialect import diagnostics, passes
from mx_dialect._mlir import arith, ext, func, ir, passmanager, rewrite

ROOT = Path(__file__).parents[2]
MX = "!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
PROGRAM = f"""
func.func @f(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<32x8xf32>) -> tensor<32x8xf32> {{
  %0 = mx.block_matmul %a, %b, %acc : {MX}, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}}
"""
REFUSED = f"""func.func @f(%a: {MX}) {{
  %0 = builtin.unrealized_conversion_cast %a : {MX} to i32
  return
}}"""
FOLDS = f"""
func.func @f(%a: {MX}) -> {MX} {{
  %c = arith.constant 4.0 : f32
  %0 = mx.fold_scale %a, %c : {MX}, f32 -> {MX}
  %1 = mx.fold_scale %0, %c : {MX}, f32 -> {MX}
  return %1 : {MX}
}}
"""


def manager(context, *passes, anchor="builtin.module"):
    made = passmanager.PassManager(anchor, context)
    for each in passes:
        made.add(each)
    return made


# --- passes in a pass manager ---


@pytest.mark.parametrize("products", ["elements", "exponent"])
def test_a_pass_does_what_its_flag_does(products):
    expected = mx_dialect.transform(PROGRAM, f"cse,mx-to-linalg{{scale-products={products}}},cse")
    module = mx_dialect.parse(PROGRAM)
    manager(module.context, "cse", mx_dialect.pass_("mx-to-linalg", scale_products=products), "cse").run(
        module.operation
    )
    assert mx_dialect.to_asm(module) == expected
    assert "linalg.generic" in expected


TELLING = """
func.func @f(%x: tensor<?xf32>) {
  return
}
func.func @g() { return }
"""


@pytest.fixture
def telling(monkeypatch):
    """Register a pass that tells something about each function and refuses one named @bad."""

    def tell(root, options):
        for function in root.regions[0].blocks[0]:
            name = function.attributes["sym_name"].value
            note = diagnostics.at(function, "note", "for \\ this reason")
            diagnostics.remark_at(function, f'has the "name"\n{name} 100%')
            diagnostics.tell(diagnostics.at(function, "warning", "be warned", (note,)))
            if name == "bad":
                raise mx_dialect.MxError("bad")

    monkeypatch.setitem(passes._registered, "mx-telling", passes.Pass("mx-telling", "tells", tell))
    return mx_dialect.pass_("mx-telling")


def handled(context):
    """Return the list of (severity, location, message) that a handler of a context appends to."""
    seen = []

    def handle(diagnostic):
        seen.append((diagnostic.severity.name, str(diagnostic.location), diagnostic.message))
        assert [note.message.split(":")[0] for note in diagnostic.notes] == ["see current operation"]
        return True

    context.attach_diagnostic_handler(handle)
    return seen


def test_remarks_reach_the_handlers_of_the_context(telling, capfd):
    module = mx_dialect.parse(TELLING, "file.mlir")
    seen = handled(module.context)
    manager(module.context, "cse", telling, "canonicalize").run(module.operation)
    # Where functions begin.
    places = ['loc("file.mlir":2:1)', 'loc("file.mlir":5:1)']
    assert seen == [
        ("REMARK", place, message)
        for place, name in zip(places, "fg", strict=True)
        for message in (f'has the "name"\n{name} 100%', "warning: be warned", "note: for \\ this reason")
    ]
    assert mx_dialect.to_asm(module).count("func.func") == 2
    without = mx_dialect.parse(TELLING)
    manager(without.context, telling).run(without.operation)
    assert capfd.readouterr() == ("", "")


def test_remarks_come_before_an_error(telling):
    module = mx_dialect.parse("func.func @bad() { return }\nfunc.func @after() { return }")
    seen = handled(module.context)
    with pytest.raises(mx_dialect.MxError, match=r"^bad$"):
        manager(module.context, telling).run(module.operation)
    assert seen[0][2].startswith("has the")
    assert len(seen) == 3


def test_remarks_without_a_place(telling):
    module = mx_dialect.parse("module {}")
    with module.context, ir.Location.unknown(), ir.InsertionPoint(module.body):
        func.FuncOp("made", ((), ()), visibility="private")
    seen = handled(module.context)
    manager(module.context, telling).run(module.operation)
    assert [place for _, place, _ in seen] == ["loc(unknown)"] * 3


def test_a_named_pipeline_runs_upstream_passes_inside():
    module = mx_dialect.parse(PROGRAM)
    manager(module.context, mx_dialect.pass_("mx-lower-to-llvm")).run(module.operation)
    assert "llvm.func @f" in str(module)
    assert "mx." not in str(module)


def test_a_manager_shows_its_passes():
    context = mx_dialect.load()
    made = manager(context, mx_dialect.pass_("mx-canonicalize"))
    p = mx_dialect.pass_("mx-schedule-cpu", emit=True, threads=2)
    made.add(p, argument=p.text)
    assert str(made) == "builtin.module(unknown<mx-canonicalize>,mx-schedule-cpu{emit=true threads=2})"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "mx-to-linalg",
            {"scale_products": 3},
            "option 'scale-products' of pass 'mx-to-linalg' takes a string, not '3'",
        ),
        ("mx-to-linalg", {"scale_products": "x"}, "is one of elements, exponent, not 'x'"),
        (
            "mx-to-linalg",
            {"products": "x"},
            "pass 'mx-to-linalg' has no option 'products'; its options: scale-products",
        ),
        ("mx-schedule-cpu", {"emit": 1}, "option 'emit' of pass 'mx-schedule-cpu' takes true or false, not '1'"),
        (
            "mx-schedule-cpu",
            {"threads": True},
            "option 'threads' of pass 'mx-schedule-cpu' takes an integer, not 'True'",
        ),
        ("mx-bufferize", {"threads": 1}, "pipeline 'mx-bufferize' takes no options"),
        ("cse", {}, "'cse' is a pass of MLIR; add it to the pass manager by its name"),
        ("mx-to-linal", {}, "did you mean 'mx-to-linalg'?"),
    ],
)
def test_names_and_options_are_checked_at_once(name, options, message):
    with pytest.raises(mx_dialect.MxError) as caught:
        mx_dialect.pass_(name, **options)
    assert message in str(caught.value)


def test_a_refusal_comes_out_of_run_and_the_context_stays_usable():
    module = mx_dialect.parse(REFUSED, "user.mlir")
    with pytest.raises(mx_dialect.MxError, match="does not know how to split") as caught:
        manager(module.context, mx_dialect.pass_("mx-to-linalg")).run(module.operation)
    assert [(d.file, d.line) for d in caught.value.diagnostics] == [("user.mlir", 2)]
    manager(module.context, "canonicalize").run(module.operation)
    assert "unrealized" not in str(module)


HOSTILE = {
    "nested": """
module = mx_dialect.parse("func.func @f() { return }")
made = passmanager.PassManager("func.func", module.context)
made.add(mx_dialect.pass_("mx-canonicalize"))
made.run(next(iter(module.body)).operation)
""",
    "not loaded": """
module = ir.Module.parse("func.func @f() { return }", ir.Context())
made = passmanager.PassManager("builtin.module", module.context)
made.add(mx_dialect.pass_("mx-canonicalize"))
made.run(module.operation)
""",
}


@pytest.mark.parametrize(
    ("case", "message"),
    [("nested", "'func.func' op: 'mx-canonicalize' runs on builtin.module only"), ("not loaded", "mx_dialect.load(")],
)
def test_wrong_managers_are_refused_without_an_abort(case, message):
    code = f"import mx_dialect\nfrom mx_dialect._mlir import ir, passmanager\n{HOSTILE[case]}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert message in done.stderr.splitlines()[-1]


def test_a_manager_keeps_its_passes():
    module = mx_dialect.parse(PROGRAM)
    made = manager(module.context, mx_dialect.pass_("mx-to-linalg"))
    gc.collect()
    made.run(module.operation)
    assert "linalg.generic" in str(module)


# --- text and bytecode ---


def test_bytecode_comes_back_as_it_was():
    module = mx_dialect.parse(PROGRAM)
    data = mx_dialect.to_bytecode(module)
    assert data.startswith(b"ML\xefR")
    assert mx_dialect.to_asm(mx_dialect.parse(data)) == mx_dialect.to_asm(module)


def test_transform_returns_what_it_was_given():
    text = mx_dialect.transform(PROGRAM, "mx-to-linalg")
    assert "linalg.generic" in text
    assert mx_dialect.transform(PROGRAM.encode(), "mx-to-linalg") == text.encode()
    lowered = mx_dialect.transform(mx_dialect.to_bytecode(mx_dialect.parse(PROGRAM)), "mx-to-linalg")
    # Readable by bindings that have never heard of the dialect.
    assert str(ir.Module.parse(lowered, ir.Context())) == text
    assert '"mx.block_matmul"(' in mx_dialect.transform(PROGRAM, "cse", generic=True)


@pytest.mark.parametrize("source", ["func.func @", b"\xff\xfe", b"ML\xefR garbage", b"ML\xefR"])
def test_garbage_is_one_error(source):
    with pytest.raises(mx_dialect.MxError):
        mx_dialect.transform(source, "mx-to-linalg")


def test_truncated_bytecode_is_an_error():
    data = mx_dialect.to_bytecode(mx_dialect.parse(PROGRAM))
    for end in range(5, len(data), 97):
        with pytest.raises(mx_dialect.MxError):
            mx_dialect.transform(data[:end], "cse")


# --- contexts ---


def test_contexts_have_the_dialect_each_and_once():
    contexts = [mx_dialect.load() for _ in range(3)]
    for context in contexts:
        assert mx_dialect.load(context) is context
        assert MX in mx_dialect.to_asm(mx_dialect.parse(PROGRAM, context=context))


def test_a_context_that_was_used_with_threads():
    context = ir.Context()
    context.enable_multithreading(True)
    functions = "\n".join(f"func.func @f{i}() {{ return }}" for i in range(20))
    before = ir.Module.parse(functions, context)
    manager(context, "func.func(canonicalize)").run(before.operation)
    mx_dialect.load(context)
    # Verified side by side, these would wait for each other forever.
    many = mx_dialect.parse("\n".join(PROGRAM.replace("@f", f"@g{i}") for i in range(20)), context=context)
    manager(context, "func.func(canonicalize)", mx_dialect.pass_("mx-to-linalg")).run(many.operation)
    assert "mx." not in str(many)
    assert before.operation.verify()


class Other(ext.Dialect, name="mx_test_other"):
    """A dialect of the user's own."""


class NegateOp(Other.Operation, name="negate"):
    value: ext.Operand[ir.F32Type]
    negated: ext.Result[ir.F32Type]


@pytest.mark.parametrize("first", ["mx", "other"])
def test_beside_another_dialect_defined_in_python(first):
    context = ir.Context()
    if first == "mx":
        mx_dialect.load(context)
    with context, ir.Location.unknown():
        Other.load()
    mx_dialect.load(context)
    use = 'func.func @g(%a: f32) -> f32 { %0 = "mx_test_other.negate"(%a) : (f32) -> f32 return %0 : f32 }'
    module = mx_dialect.parse(PROGRAM + use, context=context)
    mx_dialect.run_pipeline(module, "mx-to-linalg")
    assert "mx_test_other.negate" in str(module)
    assert "linalg.generic" in str(module)


class Context:
    """A context of other bindings, as far as anybody here can tell."""


def test_a_context_of_other_bindings():
    with pytest.raises(mx_dialect.MxError, match=r"not a .*Context; .* pass text or bytecode"):
        mx_dialect.load(Context())
    with pytest.raises(mx_dialect.MxError, match="pass text or bytecode"):
        mx_dialect.parse(PROGRAM, context=Context())


# --- pattern sets ---


def test_canonicalization_in_a_pattern_set_of_the_user():
    module = mx_dialect.parse(FOLDS + "func.func @g(%a: f32) -> f32 { %0 = arith.negf %a : f32 return %0 : f32 }")

    def double_instead(op, rewriter):
        with rewriter.ip, op.location:
            twice = arith.addf(op.operands[0], op.operands[0])
        rewriter.replace_op(op, [twice])

    with module.context, ir.Location.unknown():
        patterns = rewrite.RewritePatternSet()
        patterns.add(arith.NegFOp, double_instead)
        for op_class, pattern in mx_dialect.patterns.canonicalization():
            patterns.add(op_class, pattern)
        frozen = patterns.freeze()
        rewrite.apply_patterns_and_fold_greedily(module.operation, frozen)
    text = mx_dialect.to_asm(module)
    assert text.count("mx.fold_scale") == 1
    assert "1.600000e+01 : f32" in text
    assert "arith.addf" in text
    assert "arith.negf" not in text


# --- the document ---


def test_the_document_runs(capsys):
    text = (ROOT / "docs" / "embedding.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(block, names)
    assert capsys.readouterr().out.count("mx.fold_scale") == 1
    assert "linalg.generic" in names["text"] or "tensor<32x2xf8E8M0FNU>" in names["text"]
