"""Decoding a side with few rows to f32 rows along k, for schedules that read it many times."""

from typing import Any

from mx_dialect._mlir import memref
from mx_dialect.schedule.contraction import Contraction, Side, reads_along
from mx_dialect.schedule.emitter import Size, add, floordiv, index, loop, scaled, store_vector
from mx_dialect.schedule.side import SideReader


def decode_rows(
    contraction: Contraction, side: Side, free: int, rows: Size, k: Size, batch: list[Any], into: Any, lanes: int
) -> None:
    """Fill `into`, f32 [rows][k], with a side; `free` is the loop of its rows, m or n."""
    along_k = reads_along(side, contraction.k[-1])
    reader = SideReader(contraction, side, contraction.k[-1] if along_k else -1, lanes)
    block = contraction.block

    def places(row: Size, at: Size, place: Size, k: Size) -> list[Any]:
        m, n = (row, 0) if free == contraction.m else (0, row)
        return contraction.loops(batch, m, n, at, place, k)

    def row_of(row: Any) -> list[Any]:
        def blocks(at: Any) -> list[Any]:
            base = scaled(at, block)
            shared = reader.block_values(places(row, at, 0, base))
            if along_k:
                for place in range(0, block, lanes):
                    value = reader.element(places(row, at, place, add(base, place)), shared)
                    store_vector(value, into, [row, add(base, place)])
                return []

            def one(i: Any) -> list[Any]:
                value = reader.scalar(places(row, at, i, add(base, i)), shared)
                memref.store(value, into, [index(row), index(add(base, i))])
                return []

            return loop(0, block, 1, one)

        return loop(0, floordiv(k, block), 1, blocks)

    loop(0, rows, 1, row_of)
