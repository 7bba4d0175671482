"""mx-quantize-linear: quantize the constant weights of linear layers.

    %w = arith.constant dense_resource<weight> : tensor<128x64xf32>
    %t = linalg.transpose ins(%w : tensor<128x64xf32>) outs(%0 : tensor<64x128xf32>) permutation = [1, 0]
    %y = linalg.matmul ins(%x, %t : tensor<4x64xf32>, tensor<64x128xf32>) outs(%acc : tensor<4x128xf32>)

becomes, with format=f4E2M1FN,

    %c = arith.constant dense<"0x..."> : tensor<128x32xi8>
    %s = arith.constant dense<"0x..."> : tensor<128x2xf8E8M0FNU>
    %u = mx.unpack %c {element = f4E2M1FN} : tensor<128x32xi8> -> tensor<128x64xi8>
    %q = mx.compose %u, %s : tensor<128x64xi8>, tensor<128x2xf8E8M0FNU> -> <128x64xf4E2M1FN, ...>
    %y = mx.block_matmul %x, %q, %acc {transpose_rhs} : ...

Weights are what `constant_weights` finds, on either side of linalg.matmul, linalg.batch_matmul or a linalg.generic that
says the same; they are stored with K last. A weight that several products use is quantized once. Remarks tell what
became of each, and why a product with a constant weight was left as it is, unless an option asked for that.

Where K is not whole blocks, the weight is stored with zeros behind it, and a tensor.pad gives them to the activations.
Activations and accumulators of f16 or bf16 are extended: products and sums are in f32, and the result is rounded once.

`exclude` takes patterns of `fnmatch`, separated by commas: a weight stays if one matches, with case, the name of its
resource, the symbol of its global, or a name in the location of the constant or load.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect import passes
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import DEFAULT_ROUNDING, ELEMENT_FORMATS, ROUNDING_MODES
from mx_dialect.ingress.linear import Choice, quantize_products


@dataclass(frozen=True)
class Options:
    format: str = passes.option("f8E4M3FN", "element format of the weights", tuple(ELEMENT_FORMATS))
    rounding: str = passes.option(DEFAULT_ROUNDING, "rounding of the shared exponent", tuple(ROUNDING_MODES))
    block_size: int = passes.option(32, "elements that share a scale, a power of two")
    min_elements: int = passes.option(0, "weights with fewer elements stay as they are")
    exclude: str = passes.option("", "patterns of names of weights that stay as they are, separated by commas")

    def __post_init__(self) -> None:
        if self.block_size < 8 or self.block_size & (self.block_size - 1):
            raise MxError(
                f"option 'block-size' of pass 'mx-quantize-linear' is a power of two from 8 on, not '{self.block_size}'"
            )


def run(root: Any, options: Options) -> None:
    """Quantize the weights of the products under `root`, in place."""
    exclude = tuple(pattern.strip() for pattern in options.exclude.split(",") if pattern.strip())
    quantize_products(root, Choice(options.format, options.rounding, options.block_size, options.min_elements, exclude))


PASS = passes.register_pass(
    passes.Pass(
        name="mx-quantize-linear",
        summary="Quantize the constant weights of linalg matrix products",
        run=run,
        options=Options,
        leaves="products with weights that are not constant, excluded or too small",
    )
)
