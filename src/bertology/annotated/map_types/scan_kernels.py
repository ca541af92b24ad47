"""The two Triton kernels of `scanning`; imported only where Triton is.

`scan` reads a map once and leaves its cells and a few vectors: what columns receive, what rows
hold, the diagonals, the columns that take most. `sum_up` makes facts and measures of the vectors,
several maps at a time. Both say what `Cells.shrink`, `TextFacts.of` and `map_measures` say.
"""

# mypy: ignore-errors
# Triton has a language of its own inside these functions, which no type checker knows.

import triton
import triton.language as tl

VECTORS = 17  # by name below, each of T numbers
_FIRST, _SECOND, _SPREAD = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)  # by column
_DARKEST, _SQUARES, _DISTANCE = tl.constexpr(3), tl.constexpr(4), tl.constexpr(5)  # by row
_LINES, _COLUMNS = tl.constexpr(6), tl.constexpr(13)  # seven and four, by row

_REACH, _OFFSETS = tl.constexpr(3), tl.constexpr(7)
_STRIPES, _TOP = tl.constexpr(4), tl.constexpr(8)
_TINY, _TINIER, _FAINT = tl.constexpr(1e-9), tl.constexpr(1e-12), tl.constexpr(1e-4)


@triton.jit
def scan(
    maps, segments, rows, columns, small, vectors,
    of_text, of_head, row, column, heads, size, between,
    side: tl.constexpr, width: tl.constexpr, block: tl.constexpr, measured: tl.constexpr,
):  # fmt: skip
    """One map, a block of rows at a time. Vectors of one name lie `between` numbers apart."""
    me = tl.program_id(0).to(tl.int64)
    b, h = me // heads, me % heads
    base, marks, mine = maps + b * of_text + h * of_head, segments + b * size, vectors + me * size
    s, g = tl.arange(0, width), tl.arange(0, side)
    here = s < size
    part = tl.load(marks + s, here, -1)
    real = part >= 0
    share = 1 / tl.maximum(tl.sum(real.to(tl.float32), 0), 1.0)
    into = tl.load(columns + (b * size + s[:, None]) * side + g[None, :], here[:, None], 0.0)
    first, second = tl.zeros((width,), tl.float32), tl.zeros((width,), tl.float32)
    spread = tl.zeros((width,), tl.float32)
    cells = tl.zeros((side, side), tl.float32)
    for start in range(0, size, block):
        t = start + tl.arange(0, block)
        q = tl.load(marks + t, t < size, -1)
        at = base + t[:, None] * row + s[None, :] * column
        a = tl.load(at, (q >= 0)[:, None] & real[None, :], 0.0).to(tl.float32)
        # Exactly: products of the usual precision would lose what is faint.
        narrow = tl.dot(a, into, input_precision="ieee")
        of_cell = tl.load(
            rows + (b * side + g[:, None]) * size + t[None, :], t[None, :] < size, 0.0
        )
        cells += tl.dot(of_cell, narrow, input_precision="ieee")
        first += tl.sum(tl.where((q == 0)[:, None], a, 0.0), 0)
        second += tl.sum(tl.where((q == 1)[:, None], a, 0.0), 0)
        tl.store(mine + _DARKEST * between + t, tl.max(a, 1), t < size)
        tl.store(mine + _SQUARES * between + t, tl.sum(a * a, 1), t < size)
        if measured:
            spread -= tl.sum(tl.where(a > 0, a * tl.log(tl.maximum(a, 1e-30)), 0.0), 0)
            apart = tl.abs(t[:, None] - s[None, :]).to(tl.float32)
            tl.store(mine + _DISTANCE * between + t, tl.sum(a * apart, 1), t < size)
    tl.store(small + me * side * side + g[:, None] * side + g[None, :], cells)
    tl.store(mine + _FIRST * between + s, first * share, here)
    tl.store(mine + _SECOND * between + s, second * share, here)
    if measured:
        tl.store(mine + _SPREAD * between + s, spread * share, here)
    for i in tl.static_range(_OFFSETS):
        k = i - _REACH
        inside = real & (s + k >= 0) & (s + k < size)
        x = tl.load(base + s * row + (s + k) * column, inside, 0.0).to(tl.float32)
        tl.store(mine + (_LINES + i) * between + s, x, here)
    left = tl.where(real, first + second, -1.0)
    for i in tl.static_range(_STRIPES):
        value, where = tl.max(left, 0, return_indices=True)
        left = tl.where(s == where, -1.0, left)
        # In a text of fewer tokens the last ones are none, and their columns empty.
        there = real & (value + tl.zeros_like(left) >= 0)
        x = tl.load(base + s * row + where * column, there, 0.0).to(tl.float32)
        tl.store(mine + (_COLUMNS + i) * between + s, x, here)


@triton.jit
def _two_most(x, place):
    most, first = tl.max(x, 1, return_indices=True)
    return most + tl.max(tl.where(place == first[:, None], 0.0, x), 1)


@triton.jit
def _of_lines(
    mine, out, between, over, share, here, is_one, size,
    width: tl.constexpr, many: tl.constexpr,
):  # fmt: skip
    """Writes the facts of the diagonals; gives what others need of them."""
    s = tl.arange(0, width)[None, :]
    none, empty = tl.zeros((many,), tl.float32), tl.zeros((many, width), tl.float32)
    most, near, wide, squares, root_best, to_best = none - 1, none, none, none, none, none
    all_near, all_wide, nearby, of_all, along = empty, empty, empty, empty, empty
    for i in tl.static_range(_OFFSETS):
        k = i - _REACH
        at = mine + (_LINES + i) * between
        x = tl.load(at, here, 0.0)
        mass = tl.sum(x, 1) * share
        tl.store(out + i, mass, is_one)
        root_best = tl.where(mass > most, tl.sum(tl.sqrt(x), 1), root_best)
        to_best = tl.where(mass > most, tl.sum(x * over, 1), to_best)
        most = tl.maximum(mass, most)
        wide += mass
        all_wide += x
        of_all = tl.maximum(of_all, x)
        squares += tl.sum(x * x, 1)
        if i >= _REACH - 1 and i <= _REACH + 1:
            near += mass
            all_near += x
            nearby = tl.maximum(nearby, x)
        # By column: what the query k before it gives.
        along += tl.load(at - k, here & (s - k >= 0) & (s - k < size), 0.0)
    tl.store(out + 7, most, is_one)
    tl.store(out + 8, root_best * share, is_one)
    tl.store(out + 9, to_best * share, is_one)
    tl.store(out + 10, near, is_one)
    tl.store(out + 11, tl.sum(tl.sqrt(all_near), 1) * share, is_one)
    tl.store(out + 12, tl.sum(nearby * over, 1) * share, is_one)
    tl.store(out + 13, wide, is_one)
    tl.store(out + 14, wide - tl.minimum(_OFFSETS * share, 1.0), is_one)
    tl.store(out + 15, tl.sum(tl.sqrt(all_wide), 1) * share, is_one)
    tl.store(out + 16, tl.sum(of_all * over, 1) * share, is_one)
    root_all = tl.sum(tl.sqrt(of_all), 1) * share
    return most, near, squares * share, root_all, along * share[:, None]


@triton.jit
def _of_columns(
    mine, out, between, received, over, share, here, is_one,
    width: tl.constexpr, many: tl.constexpr,
):  # fmt: skip
    """Writes the facts of the columns that take most; gives what two of them take."""
    s = tl.arange(0, width)[None, :]
    left, sums, two = received, tl.zeros((many,), tl.float32), tl.zeros((many,), tl.float32)
    for i in tl.static_range(_TOP):
        value, where = tl.max(left, 1, return_indices=True)
        sums += value
        left = tl.where(s == where[:, None], 0.0, left)
        if i == 0:
            tl.store(out + 17, sums, is_one)
        if i == 1:
            two = sums
            tl.store(out + 18, sums, is_one)
        if i == 3:
            tl.store(out + 19, sums, is_one)
        if i == 7:
            tl.store(out + 20, sums, is_one)
    sums_of, darkest = tl.zeros((many, width), tl.float32), tl.zeros((many, width), tl.float32)
    for i in tl.static_range(_STRIPES):
        x = tl.load(mine + (_COLUMNS + i) * between, here, 0.0)
        sums_of += x
        darkest = tl.maximum(darkest, x)
        root = tl.sum(tl.sqrt(sums_of), 1) * share
        if i == 0:
            tl.store(out + 21, root, is_one)
            tl.store(out + 24, tl.sum(x * over, 1) * share, is_one)
        if i == 1:
            tl.store(out + 22, root, is_one)
        if i == 3:
            tl.store(out + 23, root, is_one)
            tl.store(out + 25, tl.sum(darkest * over, 1) * share, is_one)
    return two


@triton.jit
def _of_sentences(first, second, part, sharp, near, out, is_one, s):
    """Writes the facts of the sentences; gives the attention within them beyond chance."""
    n0, n1 = tl.sum((part == 0).to(tl.float32), 1), tl.sum((part == 1).to(tl.float32), 1)
    share = 1 / tl.maximum(n0 + n1, 1.0)
    paired = (n1 > 0).to(tl.float32)
    size0, size1 = n0 * share, n1 * share
    scale0, scale1 = tl.maximum(size0, _TINY), tl.maximum(size1, _TINY)
    within0 = tl.sum(tl.where(part == 0, first, 0.0), 1)
    within1 = tl.sum(tl.where(part == 1, second, 0.0), 1)
    beyond0 = (within0 / scale0 - size0) * paired
    beyond1 = (within1 / scale1 - size1) * paired
    first, second = first / scale0[:, None], second / scale1[:, None]  # mean rows
    sharp0 = tl.sum(tl.where(part == 0, sharp, 0.0), 1) / tl.maximum(n0, 1.0)
    sharp1 = tl.sum(tl.where(part == 1, sharp, 0.0), 1) / tl.maximum(n1, 1.0)
    alike0 = tl.sum(first * first, 1) / (sharp0 + _TINY)
    alike1 = tl.sum(second * second, 1) / (sharp1 + _TINY)
    total = beyond0 * size0 + beyond1 * size1
    alike = alike0 * size0 + alike1 * size1
    by_chance = size0 * size0 + size1 * size1
    far = (within0 + within1 - near) / tl.maximum(1 - near, 0.05)
    tl.store(out + 31, total, is_one)
    tl.store(out + 32, tl.minimum(beyond0, beyond1), is_one)
    tl.store(out + 33, tl.maximum(beyond0, beyond1), is_one)
    tl.store(out + 34, (far - by_chance) * paired, is_one)
    tl.store(out + 35, alike, is_one)
    tl.store(out + 36, _two_most(first, s) * size0 + _two_most(second, s) * size1, is_one)
    tl.store(out + 37, total * (1 - alike), is_one)
    tl.store(out + 43, paired, is_one)
    return (within0 + within1 - by_chance) * paired


@triton.jit
def sum_up(
    vectors, segments, facts, measures,
    heads, size, maps, between, of_layer,
    width: tl.constexpr, many: tl.constexpr, count: tl.constexpr, measured: tl.constexpr,
):  # fmt: skip
    """`many` maps of one layer; the vectors of layers lie `of_layer` numbers apart."""
    layer = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * many + tl.arange(0, many).to(tl.int64)
    is_one = n < maps
    s = tl.arange(0, width)[None, :]
    here = is_one[:, None] & (s < size)
    mine = vectors + layer * of_layer + n[:, None] * size + s
    out = facts + (layer * maps + n) * count
    part = tl.load(segments + (n // heads)[:, None] * size + s, here, -1)
    tokens = tl.maximum(tl.sum((part >= 0).to(tl.float32), 1), 1.0)
    share = 1 / tokens
    top = tl.load(mine + _DARKEST * between, here, 0.0)
    sharp = tl.load(mine + _SQUARES * between, here, 0.0)
    first = tl.load(mine + _FIRST * between, here, 0.0)
    second = tl.load(mine + _SECOND * between, here, 0.0)
    received, over = first + second, 1 / (top + _TINY)

    most, near, line_squares, root_all, along = _of_lines(
        mine, out, between, over, share, here, is_one, size, width, many
    )
    two = _of_columns(mine, out, between, received, over, share, here, is_one, width, many)
    block = _of_sentences(first, second, part, sharp, near, out, is_one, s)

    # How alike rows are, also of what is left without the diagonals
    squares, rest = tl.sum(sharp, 1) * share, received - along
    alike, left_top = tl.sum(received * received, 1), _two_most(rest, s)
    remains = tl.maximum(squares - line_squares, _FAINT)
    tl.store(out + 26, alike, is_one)
    tl.store(out + 27, alike / (squares + _TINY), is_one)
    tl.store(out + 28, left_top, is_one)
    tl.store(out + 29, tl.minimum(tl.sum(rest * rest, 1) / remains, 1.0), is_one)
    tl.store(out + 30, left_top * root_all, is_one)

    # How dark they are, and how many
    dark = tl.sum(top, 1) * share
    tl.store(out + 38, squares, is_one)
    tl.store(out + 39, dark, is_one)
    tl.store(out + 40, dark / tl.max(top, 1), is_one)
    tl.store(out + 41, 1 / (tokens * dark), is_one)
    tl.store(out + 42, tl.log(tokens), is_one)

    if measured:
        spread = tl.load(mine + _SPREAD * between, here, 0.0)
        distance = tl.load(mine + _DISTANCE * between, here, 0.0)
        some = tl.maximum(received, _TINIER)
        effective = tl.exp(tl.minimum(tl.log(some) + spread / some, 0.0))
        to, further = measures + layer * maps + n, tl.num_programs(1) * maps
        tl.store(to, tl.sum(spread, 1) / tl.log(tl.maximum(tokens, 2.0)), is_one)
        tl.store(to + further, near, is_one)
        tl.store(to + 2 * further, most, is_one)
        tl.store(to + 3 * further, two, is_one)
        tl.store(to + 4 * further, tl.sum(received * effective, 1), is_one)
        tl.store(to + 5 * further, block, is_one)
        tl.store(to + 6 * further, tl.sum(distance, 1) * share, is_one)
