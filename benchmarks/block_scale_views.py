"""CPU time of mx-block-scale-views on programs of up to 100,000 operations and 1,000 functions: ns for each operation.

A program is kernels that load windows of scales in a loop, at offsets which are proven through arithmetic, loop
variables, block numbers and parameters, and a function that calls each kernel twice. In the `long proofs` programs an
offset is a sum of 60 terms, whose proofs take most of their budgets. The time is linear if the last column stays as it
is from row to row.

    python -m benchmarks.block_scale_views [--rounds 1] [--json]
"""

import argparse
import json
import statistics
import sys
import time
from typing import Any

from mx_dialect import dialect, passes
from mx_dialect._mlir import ir

_VIEW = 'tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>'
_TILE = '!mx.tile<tensor<16x2xf8E8M0FNU>, "mat", [16, 2]>'
_DYNAMIC = -(2**63)
# The rows of the table: operations, functions, terms of each offset.
PROGRAMS = (
    ("short proofs", 1_000, 10, 1),
    ("short proofs", 10_000, 100, 1),
    ("short proofs", 100_000, 1_000, 1),
    ("short proofs", 100_000, 2, 1),
    ("long proofs", 1_000, 10, 60),
    ("long proofs", 10_000, 100, 60),
    ("long proofs", 100_000, 1_000, 60),
)


def load(number: int, offset: str) -> str:
    """Return a load of a window of scales at a row offset."""
    attributes = (
        'target = "mat", operandSegmentSizes = array<i32: 1, 1, 0, 0>,'
        f" static_offsets = array<i64: {_DYNAMIC}, 2>, static_window = array<i64: 16, 2>, static_valid = array<i64>"
    )
    return f'%t{number} = "mx.tile_load"(%s, {offset}) {{{attributes}}} : ({_VIEW}, index) -> {_TILE}'


def kernel(name: str, operations: int, terms: int) -> tuple[str, int]:
    """Return a kernel of about so many operations, and how many they are; an offset is a sum of `terms` products."""
    lines = [
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        "%c16 = arith.constant 16 : index",
        "%c4096 = arith.constant 4096 : index",
        '%block = "mx.block_idx"() : () -> index',
        "%base = arith.muli %block, %c16 : index",
        "scf.for %i = %c0 to %c4096 step %c16 {",
    ]
    count = len(lines)
    number = 0
    while count < operations:
        total = "%base" if number % 2 else "%row"
        for term in range(terms):
            lines.append(f"%o{number}_{term} = arith.addi {total}, {'%i' if term % 2 else '%base'} : index")
            total = f"%o{number}_{term}"
        lines.append(load(number, total))
        count += terms + 1
        number += 1
    body = "\n    ".join([*lines, "}", "return"])
    return (
        f'func.func @{name}(%s: {_VIEW}, %row: index) attributes {{mx.kernel = "aic"}} {{\n    {body}\n}}\n',
        count + 3,
    )


def program(operations: int, functions: int, terms: int) -> tuple[str, int]:
    """Return a program of about so many operations in so many functions, and how many they are."""
    kernels = [kernel(f"k{number}", operations // (functions - 1), terms) for number in range(functions - 1)]
    calls = [
        f"func.call @k{number}(%s, %{row}) : ({_VIEW}, index) -> ()"
        for number in range(functions - 1)
        for row in ("c32", "c64")
    ]
    constants = ["%c32 = arith.constant 32 : index", "%c64 = arith.constant 64 : index"]
    body = "\n  ".join([*constants, *calls, "return"])
    text = "".join(text for text, _ in kernels) + f"func.func @run(%s: {_VIEW}) {{\n  {body}\n}}\n"
    return text, sum(count for _, count in kernels) + len(calls) + 4


def seconds(text: str, rounds: int) -> float:
    """Return the median CPU time of the pass over a program."""
    blocking: Any = passes.get("mx-block-scale-views")
    context = dialect.load()
    with context:
        module = ir.Module.parse(text)
        times: list[float] = []
        for _ in range(rounds):
            copy = module.operation.clone()
            start = time.process_time()
            blocking.run(copy, blocking.options())
            times.append(time.process_time() - start)
    return statistics.median(times)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1, help="runs over each program (default 1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    # What is loaded on first use is not timed.
    seconds(program(100, 2, 1)[0], 1)
    rows: list[dict[str, Any]] = []
    if not options.json:
        print(f"{'':14}{'ops':>10}{'functions':>12}{'seconds':>10}{'ns/op':>10}")
    for name, operations, functions, terms in PROGRAMS:
        text, count = program(operations, functions, terms)
        taken = seconds(text, options.rounds)
        rows.append({"program": name, "ops": count, "functions": functions, "seconds": taken})
        if not options.json:
            print(f"{name:14}{count:10,}{functions:12,}{taken:10.3f}{1e9 * taken / count:10.0f}", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
