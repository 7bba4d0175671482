"""What `benchmarks.matmul` compares with: public tools that are installed, on the same values.

Each tool is a class made once. `functions` returns what it can run of a case, by the name of its column. Tools that are
not installed, or do not know a format, have no functions.
"""

import importlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

import mx_dialect
from benchmarks.cases import BLOCK, Formats, Operands, Shape, copy_count, program, values_of_codes
from mx_dialect import pipelines
from mx_dialect.codes import decode_scale
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.mx_array import MxArray
from mx_dialect.parallel import available

Array: TypeAlias = npt.NDArray[Any]
Functions: TypeAlias = dict[str, Callable[[], object]]

TORCH = "torch sgemm"
NUMPY = "numpy sgemm"
TORCH_DEQUANTIZE = "torch dequantize + sgemm"
NUMPY_DEQUANTIZE = "numpy dequantize + sgemm"
TORCHAO = "torchao dequantize + sgemm"
IREE = "IREE"

COLUMNS = (TORCH, TORCH_DEQUANTIZE, TORCHAO, NUMPY, NUMPY_DEQUANTIZE, IREE)


class Tool(Protocol):
    """Someone else's matrix products."""

    def functions(self, shape: Shape, formats: Formats, given: Operands, threads: int, memory_bytes: int) -> Functions:
        """Return what to time, each using `threads` threads, on copies of A that exceed `memory_bytes`, if not 0."""
        ...


def _module(name: str) -> Any:
    """Return a module, None if it is not installed; what others warn of while they are imported is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError:
            return None


def _in_turn(function: Callable[[Any], object], values: list[Any]) -> Callable[[], object]:
    """Return a function of nothing that calls another with one value after the other."""
    if len(values) == 1:
        return lambda: function(values[0])
    turn: Iterator[Any] = itertools.cycle(values)
    return lambda: function(next(turn))


class Numpy:
    """numpy and its BLAS, which takes another number of threads than all only through threadpoolctl."""

    def __init__(self) -> None:
        self._control = _module("threadpoolctl")

    def functions(self, shape: Shape, formats: Formats, given: Operands, threads: int, memory_bytes: int) -> Functions:
        if self._control is not None:
            self._control.threadpool_limits(threads, "blas")
        elif threads != available():
            return {}
        result = np.empty((shape.m, shape.n), np.float32)
        count = copy_count(given.a_values.nbytes, memory_bytes)
        found: Functions = {
            NUMPY: _in_turn(
                lambda a: np.matmul(a, given.b_values, out=result),
                [given.a_values, *(given.a_values.copy() for _ in range(count - 1))],
            )
        }
        if not memory_bytes:
            table, b_table = values_of_codes(formats.a), values_of_codes(formats.b or formats.a)

            def dequantize_and_multiply() -> Array:
                b = given.b_values if given.b is None else _dequantized(given.b, b_table)
                return np.matmul(_dequantized(given.a, table), b, out=result)

            found[NUMPY_DEQUANTIZE] = dequantize_and_multiply
        return found


_SCALES = decode_scale(np.arange(256, dtype=np.uint8)).astype(np.float32)


def _dequantized(x: MxArray, table: Array) -> Array:
    """Return the values of a matrix by looking up its codes and its scales."""
    values = np.take(table, x.mantissa.view(np.uint8))
    scales = np.take(_SCALES, x.scale.view(np.uint8))
    blocks, axis = (scales[:, :, None], 1) if x.axis == 1 else (scales[:, None, :], 0)
    shape = (len(values), -1, BLOCK) if axis else (-1, BLOCK, values.shape[1])
    values.reshape(shape)[...] *= blocks
    return values


class Torch:
    """PyTorch: MKL's sgemm and sgemv on an A dequantized before, and dequantizing it first; torchao the same."""

    def __init__(self) -> None:
        self._torch = _module("torch")
        self._torchao = None if self._torch is None else _module("torchao.prototype.mx_formats.mx_tensor")

    def functions(self, shape: Shape, formats: Formats, given: Operands, threads: int, memory_bytes: int) -> Functions:
        torch = self._torch
        if torch is None:
            return {}
        torch.set_num_threads(threads)
        a, b = torch.from_numpy(given.a_values), torch.from_numpy(given.b_values)
        result = torch.empty(shape.m, shape.n)
        count = copy_count(given.a_values.nbytes, memory_bytes)

        def multiply(a: Any, b: Any) -> object:
            # A column is a vector to MKL's sgemv; mm would run sgemm.
            return torch.mv(a, b[:, 0], out=result[:, 0]) if shape.n == 1 else torch.mm(a, b, out=result)

        found: Functions = {TORCH: _in_turn(lambda a: multiply(a, b), [a, *(a.clone() for _ in range(count - 1))])}
        if memory_bytes:
            return found
        dequantize_a = self._dequantizer(given.a, formats.a)
        if given.b is None:
            found[TORCH_DEQUANTIZE] = lambda: multiply(dequantize_a(), b)
        else:
            dequantize_b = self._dequantizer(given.b, formats.b or formats.a)
            found[TORCH_DEQUANTIZE] = lambda: multiply(dequantize_a(), dequantize_b())
        torchao = self._torchao_dequantizer(given.a, formats)
        if torchao is not None:
            found[TORCHAO] = lambda: multiply(torchao(), b)
        return found

    def _dequantizer(self, x: MxArray, element_type: str) -> Callable[[], Any]:
        """Return what makes f32 values of a matrix: by torch's own conversion where it has one, else by a table."""
        torch = self._torch
        codes, scales = (torch.from_numpy(part.view(np.uint8)) for part in (x.mantissa, x.scale))
        dtype = {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2}.get(element_type)
        table, scale_table = torch.from_numpy(values_of_codes(element_type)), torch.from_numpy(_SCALES)
        by_row = x.axis == 1
        shape = (x.shape[0], -1, BLOCK) if by_row else (-1, BLOCK, x.shape[1])
        is_integer = ELEMENT_FORMATS[element_type].is_integer
        step = float(values_of_codes(element_type)[1])

        def dequantize() -> Any:
            factors = scale_table[scales.int()]
            if dtype is not None:
                values = codes.view(dtype).to(torch.float32)
            elif is_integer:
                values, factors = codes.view(torch.int8).to(torch.float32), factors * step
            else:
                values = table[codes.int()]
            values.view(shape).mul_(factors.unsqueeze(2 if by_row else 1))
            return values

        return dequantize

    def _torchao_dequantizer(self, x: MxArray, formats: Formats) -> Callable[[], Any] | None:
        torch, torchao = self._torch, self._torchao
        if torchao is None or formats.b is not None:
            return None
        dtypes = {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2, "f4E2M1FN": torch.float4_e2m1fn_x2}
        dtype = dtypes.get(formats.a)
        if dtype is None:
            return None
        scale, data = torchao.to_mx(torch.from_numpy(mx_dialect.dequantize(x)), dtype, BLOCK)
        return lambda: torchao.to_dtype(data, scale, dtype, BLOCK, torch.float32)


class Iree:
    """IREE's CPU backend, given the same loops on tensors that this package lowers from; on one processor or on all."""

    def __init__(self) -> None:
        self._compiler, self._runtime = _module("iree.compiler"), _module("iree.runtime")

    def functions(self, shape: Shape, formats: Formats, given: Operands, threads: int, memory_bytes: int) -> Functions:
        if self._compiler is None or self._runtime is None or formats.packed or formats.b or memory_bytes:
            return {}
        if threads not in (1, available()):
            return {}
        vmfb = self._compiler.compile_str(
            _lowered(shape, formats),
            target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
        )
        driver = "local-sync" if threads == 1 else "local-task"
        config = self._runtime.Config(driver)
        module = self._runtime.load_vm_flatbuffer(vmfb, driver=driver)
        arrays = (
            given.a.mantissa.view(np.int8),
            given.a.scale.view(np.int8),
            given.b_values,
            np.zeros((shape.m, shape.n), np.float32),
        )
        on_device = [self._runtime.asdevicearray(config.device, array) for array in arrays]
        return {IREE: lambda: module.matmul(*on_device).to_host()}


def _lowered(shape: Shape, formats: Formats) -> str:
    """Return a product as loops on tensors of plain bytes and floats, which are all that others' runtimes take."""
    whole = program(shape, formats)
    codes, scales = f"tensor<{shape.m}x{shape.k}xi8>", f"tensor<{shape.m}x{shape.k // BLOCK}xi8>"
    a = whole.partition("%a: ")[2].partition(", %b:")[0]
    prefix = f"func.func @matmul(%codes: {codes}, %scale_codes: {scales}, %b:"
    body = f"  %scales = arith.bitcast %scale_codes : {scales} to {scales.replace('xi8', 'xf8E8M0FNU')}\n"
    elements, spelled = "%codes", codes
    if ELEMENT_FORMATS[formats.a].bits == 8 and formats.a != "i8":
        elements, spelled = "%elements", codes.replace("xi8", f"x{formats.a}")
        body += f"  %elements = arith.bitcast %codes : {codes} to {spelled}\n"
    parts = f"{spelled}, {scales.replace('xi8', 'xf8E8M0FNU')}"
    body += f"  %a = mx.compose {elements}, %scales : {parts} -> {a.removeprefix('!mx.tensor')}\n"
    head, brace, rest = whole.partition("{\n")
    text = prefix + head.partition(", %b:")[2] + brace + body + rest
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, ",".join(pipelines.TO_LINALG))
    return mx_dialect.to_asm(module)


def tools() -> tuple[Tool, ...]:
    """Return the tools to compare with."""
    return (Torch(), Numpy(), Iree())
