"""The C++ kernels of the cpu backend: the plain blocks up to the order of sums, built once, refused clearly."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsules import ExecContext, Role, ShapeKey
from capsules.errors import CompileError
from capsules.exec import native
from capsules.nn import attend, gated_mlp, kernels, linear, norm_rotate, rms_norm, rope_table

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="needs a C++ compiler; `apt install g++` brings one"
)
DTYPES = [torch.float32, torch.bfloat16]


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def both(work: Callable[[], Tensor], folder: Path) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        plain = work()
        with native.using(folder):
            return work(), plain


def ratio(actual: Tensor, expected: Tensor) -> float:
    actual, expected = actual.double(), expected.double()
    return float((actual - expected).square().mean().sqrt() / expected.square().mean().sqrt())


def limit(dtype: torch.dtype) -> float:
    return 2e-6 if dtype == torch.float32 else 4e-3


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize(("outputs", "inputs"), [(1, 1), (7, 33), (130, 96), (100, 2100)])
def test_products_for_any_number_of_rows(kernel_folder: Path, outputs: int, inputs: int) -> None:
    w = randn(outputs, inputs, seed=1, dtype=torch.bfloat16)
    for rows in (1, 2, 16, 24, 33, 64, 70):
        x = randn(rows, inputs, dtype=torch.bfloat16)
        with torch.no_grad(), native.using(kernel_folder):
            actual = linear(x, w)
        assert actual.shape == (rows, outputs) and actual.dtype == torch.bfloat16
        assert ratio(actual, x.double() @ w.double().T) < limit(torch.bfloat16)


@pytest.mark.slow  # the kernels are built
@needs_compiler
def test_a_row_does_not_depend_on_its_neighbours_nor_a_result_on_threads(
    kernel_folder: Path, threads: Callable[[int], None]
) -> None:
    x, w = randn(64, 700, dtype=torch.bfloat16), randn(500, 700, seed=1, dtype=torch.bfloat16)
    with torch.no_grad(), native.using(kernel_folder):
        threads(1)
        whole, row = linear(x, w), linear(x[:1], w)
        threads(2)
        assert torch.equal(linear(x, w), whole) and torch.equal(linear(x[:1], w), row)
        for rows in (8, 16, 24, 32, 40):
            assert torch.equal(linear(x[:rows], w), whole[:rows])


CHILD = """
import sys
from pathlib import Path
import torch
from capsules.exec import native
native._FLAGS = (*native._FLAGS, *sys.argv[2:])
from capsules.nn import linear
from tests.capsules.test_native import limit, randn, ratio
torch.set_num_threads(1)
for rows in (1, 2, 24, 70):
    x, w = randn(rows, 333, dtype=torch.bfloat16), randn(130, 333, seed=1, dtype=torch.bfloat16)
    with torch.no_grad(), native.using(Path(sys.argv[1])):
        assert ratio(linear(x, w), x.double() @ w.double().T) < limit(torch.bfloat16), rows
"""


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("flag", ["-march=x86-64-v3", "-DNO_TILES"])
def test_products_with_fewer_instructions(tmp_path: Path, flag: str) -> None:
    """Without any for bfloat16, and without tiles. Those of this machine are met by every other test here."""
    if os.uname().machine != "x86_64":
        pytest.skip("kernels for x86-64 run there alone")
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path), flag], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize(("system", "processor"), [("darwin", "arm64"), ("linux", "aarch64")])
def test_tiles_are_an_x86_matter(monkeypatch: pytest.MonkeyPatch, system: str, processor: str) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    assert not native._tiles_granted()


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [8, 63, 256])
def test_blocks_agree_with_the_plain_ones(kernel_folder: Path, dtype: torch.dtype, size: int) -> None:
    x, w = randn(5, size, dtype=dtype), randn(size, seed=1)
    gate_up, down = randn(2 * 37, size, seed=2, dtype=dtype), randn(size, 37, seed=3, dtype=dtype)
    for work in (lambda: rms_norm(x, w, 1e-6), lambda: gated_mlp(x, gate_up, down)):
        actual, plain = both(work, kernel_folder)
        assert actual.dtype == dtype and ratio(actual, plain) < limit(dtype)


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [2, 16, 32])
def test_norm_and_turn_of_strided_heads(kernel_folder: Path, dtype: torch.dtype, dims: int) -> None:
    heads, w = randn(7, 3, 64, dtype=dtype)[..., :32], randn(32, seed=1)
    cos, sin = rope_table(torch.arange(40, 47), dims, 1e4)
    actual, plain = both(lambda: norm_rotate(heads, w, 1e-6, cos, sin), kernel_folder)
    assert ratio(actual, plain) < limit(dtype)


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (8, 2), (3, 1)])
def test_attention_of_one_row_reads_its_prefix_and_no_junk(
    kernel_folder: Path, heads: int, groups: int, dtype: torch.dtype
) -> None:
    q = randn(1, heads, 40, dtype=dtype)
    k, v = randn(90, groups, 40, seed=1, dtype=dtype), randn(90, groups, 40, seed=2, dtype=dtype)
    for position in (0, 1, 63, 89):
        at = torch.tensor([position])
        actual, plain = both(lambda at=at: attend(q, k, v, at), kernel_folder)  # type: ignore[misc]
        assert ratio(actual, plain) < limit(dtype)
        dirty_k, dirty_v = k.clone(), v.clone()
        dirty_k[position + 1 :], dirty_v[position + 1 :] = float("nan"), float("inf")
        with torch.no_grad(), native.using(kernel_folder):
            assert torch.equal(attend(q, dirty_k, dirty_v, at), actual)


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (8, 2), (3, 1)])
@pytest.mark.parametrize("rows", [2, 7, 24, 64])
def test_attention_of_a_chunk_reads_no_further_than_its_rows(
    kernel_folder: Path, threads: Callable[[int], None], rows: int, heads: int, groups: int, dtype: torch.dtype
) -> None:
    q = randn(rows, heads, 40, dtype=dtype)
    k, v = randn(200, groups, 40, seed=1, dtype=dtype), randn(200, groups, 40, seed=2, dtype=dtype)
    for start in (0, 1, 70):
        at = start + torch.arange(rows)
        actual, plain = both(lambda at=at: attend(q, k, v, at), kernel_folder)  # type: ignore[misc]
        assert ratio(actual, plain) < limit(dtype)
        dirty_k, dirty_v = k.clone(), v.clone()
        dirty_k[start + rows :], dirty_v[start + rows :] = float("nan"), float("inf")
        dirty_k[start + rows - 1], dirty_v[start + rows - 1] = 1e4, 1e4  # only the last row may see it
        with torch.no_grad(), native.using(kernel_folder):
            threads(2)
            dirty = attend(q, dirty_k, dirty_v, at)
        assert torch.equal(dirty[:-1], actual[:-1]) and not torch.equal(dirty[-1], actual[-1])
        threads(1)


@pytest.mark.slow  # the kernels are built
@needs_compiler
def test_only_steps_of_a_backend_with_a_folder_use_them(kernel_folder: Path) -> None:
    """A replay repeats the kernels of its capture, wherever it is called; contexts differ in what they say they are."""
    results = []
    for folder in (None, kernel_folder):
        ctx = ExecContext("cpu", kernels=folder)
        x = ctx.buffer("t.x", [1, 300], torch.bfloat16, role=Role.IO).tensor
        w = ctx.buffer("t.w", [50, 300], torch.bfloat16, role=Role.WEIGHT).tensor
        y = ctx.buffer("t.y", [1, 50], torch.bfloat16, role=Role.IO).tensor
        x.copy_(randn(1, 300))
        w.copy_(randn(50, 300, seed=1))
        graph = ctx.graph("t.step")
        graph.capture(ShapeKey(rows=1), lambda y=y, x=x, w=w: y.copy_(linear(x, w)))  # type: ignore[misc]
        graph.replay(ShapeKey(rows=1))
        with torch.no_grad(), native.using(folder):
            assert torch.equal(y, linear(x, w))
        results.append((ctx.describe(), y.clone()))
    assert results[0][0] != results[1][0]
    assert ratio(results[1][1], results[0][1]) < limit(torch.bfloat16)


@pytest.mark.slow  # the kernels are built
@needs_compiler
def test_a_build_is_kept_and_a_broken_source_is_reported(tmp_path: Path, kernel_folder: Path) -> None:
    folder, source = tmp_path / "kernels", tmp_path / "broken.cpp"  # the one of all tests may just be built in
    folder.mkdir()
    for file in kernel_folder.glob("*.so"):
        shutil.copy(file, folder)
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("*")}
    source.write_text("this is no program\n")
    with native.using(folder), pytest.raises(CompileError, match="failed"):
        native.operators("broken", source)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*")} == kept


def test_without_a_compiler_the_context_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(CompileError, match="install one"):
        ExecContext("cpu", kernels=tmp_path)


@needs_compiler
def test_a_library_that_lies_in_two_folders_is_opened_once(tmp_path, kernel_folder):
    both(lambda: rms_norm(randn(2, 64), torch.ones(64), 1e-6), kernel_folder)
    library = native._built(Path(kernels.__file__).with_name("host.cpp"), kernel_folder)
    assert library.name in native._libraries, "wherever this process has opened it first"
    shutil.copy(library, tmp_path)
    native.load([library.name], tmp_path)  # would end this process
    with pytest.raises(LookupError, match="no library"):
        native.load([library.name], tmp_path / "elsewhere")
