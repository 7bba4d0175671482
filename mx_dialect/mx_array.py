"""`MxArray`: a block-scaled tensor as two numpy arrays."""

import operator
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from mx_dialect.codes import (
    element_codes,
    format_named,
    format_of_dtype,
    numpy_dtype,
    scale_dtype,
    scale_format_of,
)
from mx_dialect.diagnostics import MxError
from mx_dialect.layouts import packed
from mx_dialect.tensor_spec import TensorSpec

Array: TypeAlias = npt.NDArray[Any]


def as_array(given: Any, what: str) -> Array:
    """Return a numpy array that `given` is, as the base class.

    Raises:
        MxError: it is something else; lists would silently become float64, masks would be lost.
    """
    if type(given) is np.ndarray:
        return given
    if isinstance(given, np.ma.MaskedArray):
        raise MxError(f"{what} is a masked array, whose mask would be lost; fill it first (x.filled(...))")
    if not isinstance(given, np.ndarray | np.generic):
        raise MxError(f"{what} must be a numpy array, not {type(given).__name__}")
    return np.asarray(cast(Any, given))


class MxArray:
    """A block-scaled tensor: element i along the blocked axis is mantissa[i] * scale[i // block_size].

    `mantissa` has a dtype of ml_dtypes (int8 for MXINT8), `scale` is float8_e8m0fnu, or float8_e4m3fn as in NVFP4, with
    scale.shape[axis] == shape[axis] // block_size and all other extents equal. Both are views of the arrays given, not
    copies. Arrays are compared by identity; compare `mantissa` and `scale` to compare contents.
    """

    __slots__ = ("_mantissa", "_scale", "_spec")

    def __init__(
        self,
        mantissa: Array,
        scale: Array,
        block_size: int = 32,
        axis: int = -1,
        element_type: str | None = None,
        scale_type: str | None = None,
    ):
        """Make one from its parts; `axis` counts from the end if negative.

        uint8 arrays are taken as codes, one a byte. Which format they are of `element_type` and `scale_type` say, as
        MLIR spells it ("f8E4M3FN"); codes of scales are f8E8M0FNU if nothing is said.

        Raises:
            MxError: a dtype that is no element or scale format, or not the one that `element_type` or `scale_type`
                says; a byte that is no code of the format; shapes, block size and axis that do not go together.
        """
        mantissa, scale = as_array(mantissa, "mantissa"), as_array(scale, "scale")
        if element_type is None and mantissa.dtype == np.uint8:
            raise MxError('a mantissa of uint8 codes needs element_type, such as "f8E4M3FN"')
        fmt = format_of_dtype(mantissa.dtype) if element_type is None else format_named(element_type)
        codes, scale_format = element_codes(mantissa, fmt), scale_format_of(scale, scale_type)
        try:
            block_size, axis = operator.index(block_size), operator.index(axis)
        except TypeError as error:
            raise MxError(f"block size and axis must be integers: {error}") from None
        from_front = axis + codes.ndim if -codes.ndim <= axis < 0 else axis
        spec = TensorSpec(codes.shape, fmt.mlir, block_size, scale_format.mlir, from_front)
        problem = spec.error()
        if problem is not None:
            raise MxError(problem)
        if scale.shape != spec.scale_shape:
            raise MxError(
                f"scale has shape {scale.shape}; a mantissa of shape {codes.shape} in blocks of {block_size} along axis"
                f" {from_front} needs {spec.scale_shape}"
            )
        self._spec = spec
        self._mantissa = codes.view(numpy_dtype(fmt.mlir))
        self._scale = scale.view(scale_dtype(scale_format.mlir))

    @classmethod
    def from_packed(
        cls,
        mantissa: Array,
        scale: Array,
        element_type: str,
        block_size: int = 32,
        axis: int = -1,
        scale_type: str | None = None,
    ) -> "MxArray":
        """Make one from codes packed along the last axis, as `packed` returns them; the rest as for the class.

        Raises:
            MxError: a last axis that is not whole groups of codes, and as for the class.
        """
        codes = packed.unpack(as_array(mantissa, "mantissa"), format_named(element_type).bits)
        return cls(codes, scale, block_size, axis, element_type, scale_type)

    def packed(self) -> npt.NDArray[np.uint8]:
        """Return the codes of the elements packed along the last axis: two of FP4 a byte, four of FP6 in three bytes.

        Raises:
            MxError: a last axis that is not whole groups of codes.
        """
        return packed.pack(self._mantissa.view(np.uint8), format_named(self.element_type).bits)

    @property
    def mantissa(self) -> Array:
        return self._mantissa

    @property
    def scale(self) -> Array:
        return self._scale

    @property
    def spec(self) -> TensorSpec:
        """Return the parameters of the `!mx.tensor` type with this shape."""
        return self._spec

    @property
    def shape(self) -> tuple[int, ...]:
        return self._mantissa.shape

    @property
    def ndim(self) -> int:
        return self._mantissa.ndim

    @property
    def element_type(self) -> str:
        """Return the element type as MLIR spells it."""
        return self._spec.element

    @property
    def scale_type(self) -> str:
        """Return the type of the scales as MLIR spells it."""
        return self._spec.scale_type

    @property
    def block_size(self) -> int:
        return self._spec.block_size

    @property
    def axis(self) -> int:
        """Return the blocked axis, counted from the front."""
        return self._spec.axis

    def __repr__(self) -> str:
        return f"MxArray({self._spec.custom()})"
