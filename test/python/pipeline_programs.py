"""The pipelines to machine code, and how tests run a program through one."""

import pytest

import mx_dialect

LOOPS, VECTORS = "mx-lower-to-llvm", "mx-lower-to-llvm-vectorized"
BOTH = pytest.mark.parametrize("pipeline", [LOOPS, VECTORS])


def tensor(*shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def run(text, arguments, pipeline):
    return mx_dialect.compile(text, pipeline=pipeline)(*arguments)
