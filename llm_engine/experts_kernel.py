"""The experts of a mixture on a GPU, in five launches for any number of rows: scores, choice, twice products, sum.

A program serves one pair of a row and an expert that it asked. It reads the expert's number from memory, so the grid
is fixed and a step is captured whoever is asked, and then it is the kernel for a single row with pointers moved to
the expert's matrix. So a row's bits are the same alone and in a chunk. A chunk reads an expert again for each row
that asks it, about twice what it would have to at 64 rows of the published shape (256 experts, eight asked).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.gemv import FP8, INT4, PLAIN, gemv_kernel
from capsules.nn.kernels.packed_row import packed_row_kernel, takes

_PLAIN, _PACKED, _BLOCK = (2, 1024), (4, 128), 1024
"""Outputs and inputs of a program over a plain matrix, outputs and chunks of eight inputs over a packed one, as for
one row; outputs of a program that sums."""


@triton.jit
def asked_kernel(
    x, w, scale, shift, ids, out, outputs, inputs, made, scale_columns, w_step, scale_step, SHARE: tl.constexpr,
    ASKED: tl.constexpr, STORED: tl.constexpr, SHIFTED: tl.constexpr, GROUP_ROWS: tl.constexpr,
    GROUP_COLUMNS: tl.constexpr, PAIRED: tl.constexpr, EVEN: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    """Programs (outputs, pairs). SHARE pairs see the same row of x; each makes `made` sums. Not ASKED: one matrix."""
    pair = tl.program_id(1).to(tl.int64)
    expert = tl.load(ids + pair) if ASKED else pair * 0
    row, to = x + pair // SHARE * inputs, out + pair * made
    matrix, factors, shifts = w + expert * w_step, scale + expert * scale_step, shift + expert * scale_step
    if STORED == 0:
        gemv_kernel(
            row, matrix, factors, shifts, to, outputs, inputs, scale_columns, STORED, SHIFTED, GROUP_ROWS,
            GROUP_COLUMNS, 1, PAIRED, BLOCK_O, BLOCK_I,
        )  # fmt: skip
    else:
        packed_row_kernel(
            row, matrix, factors, shifts, to, outputs, inputs, scale_columns, STORED, GROUP_ROWS, GROUP_COLUMNS // 8,
            SHIFTED, PAIRED, EVEN, BLOCK_O, BLOCK_I,
        )  # fmt: skip


@triton.jit
def choose_kernel(scores, ids, shares, experts, TOP: tl.constexpr, SIZE: tl.constexpr, KEPT: tl.constexpr):
    """One program a row. Scores that are no numbers are chosen last; every id is an expert's, whatever the scores."""
    row = tl.program_id(0)
    e, j = tl.arange(0, SIZE), tl.arange(0, KEPT)
    lowest = -1e30
    left = tl.load(scores + row * (experts + 1) + e, mask=e < experts, other=lowest)
    left = tl.where(left > lowest, left, lowest)
    first = tl.max(left, axis=0)
    kept = tl.zeros([KEPT], dtype=tl.float32)
    for turn in tl.static_range(TOP):
        expert = tl.argmax(left, axis=0, tie_break_left=True)
        kept = tl.where(j == turn, tl.exp(tl.max(left, axis=0) - first), kept)
        tl.store(ids + row * TOP + turn, expert.to(tl.int64))
        left = tl.where(e == expert, lowest, left)
    tl.store(shares + row * (TOP + 1) + j, kept / tl.sum(kept, axis=0), mask=j < TOP)
    gate = tl.load(scores + row * (experts + 1) + experts)
    tl.store(shares + row * (TOP + 1) + TOP, 1.0 / (1.0 + tl.exp(-gate)))


@triton.jit
def join_kernel(y, answers, shares, out, size, TOP: tl.constexpr, BLOCK: tl.constexpr):
    """Programs (rows, blocks): the shared expert's answer, then those of the asked, in their order."""
    row, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = i < size
    total = tl.load(y + row * size + i, mask=there, other=0.0).to(tl.float32)
    total *= tl.load(shares + row * (TOP + 1) + TOP)
    for turn in tl.static_range(TOP):
        answer = tl.load(answers + (row * TOP + turn).to(tl.int64) * size + i, mask=there, other=0.0)
        total += answer * tl.load(shares + row * (TOP + 1) + turn)
    tl.store(out + row * size + i, total.to(out.dtype.element_ty), mask=there)


Held = tuple[Tensor, Tensor, Tensor | None, int, int]
"""Values, scales and shifts of a stack, and the rows and columns that share one."""


def fits_stack(stack: Held, matrices: int) -> bool:
    """Whether the kernel reads [matrices · O, …] values: each matrix must begin at a scale of its own."""
    values, _, _, rows, columns = stack
    if values.is_floating_point() and values.itemsize > 1:
        return True
    inputs = values.shape[1] * (8 if values.dtype == torch.int32 else 1)
    return values.shape[0] // matrices % rows == 0 and takes(inputs, (rows, columns))


def launch_asked(
    x: Tensor, w: Tensor, scale: Tensor, shift: Tensor | None, block_rows: int, block_columns: int, ids: Tensor | None,
    share: int, matrices: int, paired: bool,
) -> Tensor:  # fmt: skip
    """Each pair's row times the matrix that it asked for; all contiguous.

    x        [P / share, I]
    w        [matrices · O, I], plain or float8_e4m3fn, or [matrices · O, I / 8] int32; scale and shift as `packed_row`
             takes them (w itself if plain)
    ids      P int64 in any shape; None: there is one matrix
    paired   a matrix is the rows of a gate, then as many of what it opens
    returns  [P, O] float32, or silu(gate) · up [P, O / 2] in x's type
    """
    stored = INT4 if w.dtype == torch.int32 else FP8 if w.itemsize == 1 else PLAIN
    outputs, inputs = w.shape[0] // matrices, x.shape[-1]
    out = _answers(x, w, share, matrices, paired)
    block_o, block_i = _PLAIN if stored == PLAIN else _PACKED
    held = w.view(torch.uint8) if stored == FP8 else w
    asked_kernel[(triton.cdiv(outputs, block_o), out.shape[0])](
        x, held, scale, scale if shift is None else shift, x if ids is None else ids, out, outputs, inputs,
        out.shape[1], scale.shape[-1],
        outputs * w.shape[1], outputs // block_rows * scale.shape[-1], SHARE=share, ASKED=ids is not None,
        STORED=stored, SHIFTED=shift is not None, GROUP_ROWS=block_rows, GROUP_COLUMNS=block_columns, PAIRED=paired,
        EVEN=outputs % block_o == 0, BLOCK_O=block_o, BLOCK_I=block_i, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    return out


def launch_choose(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """As `experts.choose`."""
    rows, experts = scores.shape[0], scores.shape[1] - 1
    ids, shares = _chosen(scores, top)
    choose_kernel[(rows,)](
        scores, ids, shares, experts, TOP=top, SIZE=triton.next_power_of_2(experts),
        KEPT=triton.next_power_of_2(top), num_warps=1,
    )  # fmt: skip
    return ids, shares


def launch_join(y: Tensor, answers: Tensor, shares: Tensor) -> Tensor:
    """y [T, h], answers [T · k, h] float32, shares [T, k + 1] -> [T, h] in y's type."""
    rows, size = y.shape
    out = torch.empty_like(y)
    grid = (rows, triton.cdiv(size, _BLOCK))
    join_kernel[grid](y, answers, shares, out, size, TOP=shares.shape[1] - 1, BLOCK=_BLOCK, num_warps=4)
    return out


def _answers(x: Tensor, w: Tensor, share: int, matrices: int, paired: bool) -> Tensor:
    outputs = w.shape[0] // matrices // (2 if paired else 1)
    return torch.empty(x.shape[0] * share, outputs, dtype=x.dtype if paired else torch.float32, device=x.device)


def _chosen(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    ids = torch.empty(scores.shape[0], top, dtype=torch.int64, device=scores.device)
    return ids, scores.new_empty(scores.shape[0], top + 1)


asked = torch.library.custom_op("llm_engine::asked", launch_asked, mutates_args=(), device_types="cuda")
choose = torch.library.custom_op("llm_engine::choose", launch_choose, mutates_args=(), device_types="cuda")
join = torch.library.custom_op("llm_engine::join", launch_join, mutates_args=(), device_types="cuda")


@asked.register_fake
def _(
    x: Tensor, w: Tensor, scale: Tensor, shift: Tensor | None, block_rows: int, block_columns: int, ids: Tensor | None,
    share: int, matrices: int, paired: bool,
) -> Tensor:  # fmt: skip
    assert x.is_contiguous() and w.is_contiguous() and scale.is_contiguous()
    assert fits_stack((w, scale, shift, block_rows, block_columns), matrices)
    return _answers(x, w, share, matrices, paired)


@choose.register_fake
def _(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    assert scores.is_contiguous()
    return _chosen(scores, top)


@join.register_fake
def _(y: Tensor, answers: Tensor, shares: Tensor) -> Tensor:
    assert y.is_contiguous() and answers.is_contiguous()
    return torch.empty_like(y)
