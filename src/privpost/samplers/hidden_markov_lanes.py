"""ln Γ in several states at once, as one vector; imported only where chains are run.

A compiler cannot vectorise a loop with table look-ups, so the vector operations are written out here. Every processor
does the same operations in the same order.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from privpost.samplers.log_gamma_table import FIRST_OCTAVE

# How many states are weighed at once.
LANES = 4
_INT = ir.IntType(64)
_REAL = ir.DoubleType()


def _constant(value, kind) -> ir.Constant:
    return ir.Constant(ir.VectorType(kind, LANES), [value] * LANES)


def _shuffle(builder, first, second, places):
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def _spread(builder, value):
    empty = ir.Constant(ir.VectorType(_REAL, LANES), ir.Undefined)
    return _shuffle(builder, builder.insert_element(empty, value, ir.IntType(32)(0)), empty, [0] * LANES)


def _load(builder, data, place, size):
    loaded = builder.load(builder.bitcast(builder.gep(data, [place]), ir.VectorType(_REAL, size).as_pointer()))
    loaded.align = 8
    return loaded


def _columns(builder, data, places, first=0):
    """Two vectors: the numbers `first` after each of four places, and the numbers after these."""
    pairs = [_load(builder, data, builder.add(place, _INT(first)), 2) for place in places]
    halves = [_shuffle(builder, pairs[lane], pairs[lane + 2], [0, 1, 2, 3]) for lane in (0, 1)]
    return [_shuffle(builder, *halves, places) for places in ([0, 4, 2, 6], [1, 5, 3, 7])]


def _log_gamma(builder, x, table):
    """`hidden_markov_kernels.log_gamma` of a vector inside the table."""
    place = builder.lshr(builder.bitcast(x, ir.VectorType(_INT, LANES)), _constant(42, _INT))
    row = builder.shl(builder.sub(place, _constant((1023 + FIRST_OCTAVE) << 10, _INT)), _constant(2, _INT))
    middle = builder.or_(builder.shl(place, _constant(42, _INT)), _constant(1 << 41, _INT))
    d = builder.fsub(x, builder.bitcast(middle, x.type))
    rows = [builder.extract_element(row, ir.IntType(32)(lane)) for lane in range(LANES)]
    series = [*_columns(builder, table, rows), *_columns(builder, table, rows, 2)]
    value = series.pop()
    while series:
        value = builder.fadd(series.pop(), builder.fmul(d, value))
    return value


@intrinsic
def weigh_lanes(typing_context, begin, end, index, value, sign, candidates, first, old, sums, table, gains):
    """Σ_j sign_j change (ln Γ(N_j + change value_j) − ln Γ(N_j)) of `LANES` states; change is −1 of `old`, else 1.

    Args:
        begin, end: entries j of a cell, in `index` (places in `sums`) and `value`.
        sign: of each place.
        candidates, first: the states, from the first place on.
        sums: N and ln Γ(N), (K, places, 2).
        table: of `log_gamma_table.gamma_table`.
        gains: overwritten from the first place on.
    """
    arrays = index, value, sign, candidates, sums, table, gains
    if not all(isinstance(array, types.Array) and array.layout == "C" for array in arrays):
        return None
    numbers = types.int64, types.int64
    signature = types.void(*numbers, *arrays[:4], *numbers, *arrays[4:])

    def generate(context, builder, signature, arguments):
        views = [
            context.make_array(kind)(context, builder, argument) if isinstance(kind, types.Array) else argument
            for kind, argument in zip(signature.args, arguments, strict=True)
        ]
        (begin, end), (first, old) = views[:2], views[6:8]
        index, value, sign, candidates, sums, table, gains = (view.data for view in (*views[2:6], *views[8:]))
        states = [builder.load(builder.gep(candidates, [builder.add(first, _INT(lane))])) for lane in range(LANES)]
        changes, length = _constant(1.0, _REAL), builder.extract_value(views[8].strides, 0)
        for lane, state in enumerate(states):
            change = builder.select(builder.icmp_signed("==", state, old), _REAL(-1.0), _REAL(1.0))
            changes = builder.insert_element(changes, change, ir.IntType(32)(lane))
        begins = [builder.mul(state, builder.sdiv(length, _INT(8))) for state in states]
        total = cgutils.alloca_once_value(builder, _constant(0.0, _REAL))
        with cgutils.for_range_slice(builder, begin, end, _INT(1)) as (j, _):
            i = builder.zext(builder.load(builder.gep(index, [j])), _INT)
            pair = builder.shl(i, _INT(1))
            before, gammas = _columns(builder, sums, [builder.add(place, pair) for place in begins])
            added = builder.fmul(changes, _spread(builder, builder.load(builder.gep(value, [j]))))
            term = builder.fsub(_log_gamma(builder, builder.fadd(before, added), table), gammas)
            term = builder.fmul(_spread(builder, builder.load(builder.gep(sign, [i]))), term)
            builder.store(builder.fadd(builder.load(total), term), total)
        result = builder.fmul(changes, builder.load(total))
        builder.store(result, builder.bitcast(builder.gep(gains, [first]), result.type.as_pointer())).align = 8
        return context.get_dummy_value()

    return signature, generate
