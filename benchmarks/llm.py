"""The language engine beside transformers and llama.cpp: same random weights, one interleaved run.

    python -m benchmarks.llm [--dtype bfloat16] [--shape 120m] [--rounds 7] [--threads 2] [--llama FOLDER]
                             [--out benchmarks/results/llm-cpu-120m-bfloat16.json]
    python -m benchmarks.llm --gguf FILE --dtype int4 --llama FOLDER [--threads 1]
    python -m benchmarks.llm --device cuda --shape 4b [--dtype bfloat16|float8|int4] [--out FILE.json]

On a CPU `ours` runs on the compiled C++ kernels of the cpu backend, `ours, torch` on torch alone. `--dtype int8` races
Q8_0 of llama.cpp and `int4` its Q4_0 (embedding in Q8_0, as ours has it in eight bits); transformers has neither and
takes no part. With `--gguf` both read the same published file, which ours holds in the form of `--dtype`. On a GPU the
only peer is transformers, and only in bfloat16.

Weights are random, about 120 million (hidden 768, 12 layers) or, with `--shape 0.8b`, `4b` or `9b`, as many as in
Qwen3.5: bytes, latency and exactness are those of a trained model of this shape, quality and stop lengths are not.
Every round measures every implementation once, in turn, so that a disturbance affects all alike; medians and the spread
(p10 to p90) are printed. `floor` is the time to read the weights once at the bandwidth that a plain sum over as many
bytes reaches in the same round.
"""

import argparse
import json
import platform
import random
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import torch

from assistant.device.execution import give_back_memory
from benchmarks.llm_load import config_of, write_checkpoint
from benchmarks.peers.gguf_file import write_gguf
from benchmarks.peers.llama_cpp_peer import LlamaCppPeer
from benchmarks.peers.peer import Peer
from benchmarks.peers.transformers_peer import TransformersPeer
from capsules import Capsule, ExecContext, Role
from capsules.exec.switches import PROVEN, Switch
from llm_engine import HybridLLM, LLMConfig, Sampling
from llm_engine.config import FULL, LINEAR
from llm_engine.model import init_params
from llm_engine.published import read_config
from llm_engine.weights import save_checkpoint

SHAPE = LLMConfig(
    vocab_size=32000,
    hidden_size=768,
    intermediate_size=2560,
    layer_types=([LINEAR] * 3 + [FULL]) * 3,  # type: ignore[arg-type]
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=256,
    linear_num_key_heads=4,
    linear_num_value_heads=8,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
)
SHAPES = {"120m": SHAPE, **{name: config_of(name) for name in ("0.8b", "4b", "9b")}}
FORMATS = {"bfloat16": "BF16", "int8": "Q8_0", "int4": "Q4_0", "float8": ""}  # as in the names of GGUF files
PREFIX, APPEND, REPLY, LONG = 256, 24, 16, 1000
TARGETS = {
    # case: (peer, at most this share of the peer's time)
    ("decode", "llama.cpp"): 1.0,
    ("decode", "transformers"): 1 / 3,
    ("append 24", "llama.cpp"): 0.7,
    ("append 24", "transformers"): 0.7,
    ("ttft 256", "llama.cpp"): 0.9,
    ("ttft 256", "transformers"): 0.9,
    ("warm turn 1000", "transformers"): 1 / 15,
}


class Ours:
    """This project's engine behind the same interface. `step` folds at once, as the peers do."""

    def __init__(
        self, path: Path, positions: int, kernels: Path | None, dtype: str, device: str = "cpu",
        switches: frozenset[Switch] = PROVEN,
    ) -> None:  # fmt: skip
        self.name = "ours" if kernels or device != "cpu" else "ours, torch"
        self.ctx = ExecContext(device, kernels, switches=switches)
        self.llm = HybridLLM.load(path, self.ctx, dtype, positions)
        self.llm.set_sampling(Sampling.greedy())

    def reset(self) -> None:
        self.llm.reset()

    def append(self, ids: Sequence[int]) -> int:
        return int(self.llm.append(ids).argmax())

    def step(self, token: int) -> int:
        self.llm.step()  # draws `token` again: the likeliest
        self.llm.catch_up()
        return int(self.llm.state.logits.argmax())

    def weight_bytes(self) -> int:
        """Bytes of the matrices that a decode step reads; a tied head reads the embedding once."""
        matrices = (b for b in self.ctx.buffers("llm", Role.WEIGHT) if b.tensor.dim() > 1 and "conv" not in b.name)
        return sum(b.nbytes for b in matrices)


def timed(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return (perf_counter() - began) * 1e3


def measure(peer: Peer, ids: Sequence[int]) -> dict[str, float]:
    """Milliseconds of each case, once."""
    peer.reset()
    found = {"ttft 256": timed(lambda: peer.append(ids[:PREFIX]))}
    found["append 24"] = timed(lambda: peer.append(ids[PREFIX : PREFIX + APPEND]))
    token = peer.append([ids[-1]])
    began = perf_counter()
    for _ in range(REPLY):
        token = peer.step(token)
    found["decode"] = (perf_counter() - began) * 1e3 / REPLY
    return found


def warm_turn(ours: Ours, capsule: Capsule, ids: Sequence[int]) -> float:
    """A restored talk of 1,000 tokens answers 24 new ones: time to its first token."""

    def turn() -> None:
        ours.llm.restore(capsule)
        ours.append(ids[LONG : LONG + APPEND])

    return timed(turn)


def cold_turn(peer: Peer, ids: Sequence[int]) -> float:
    """The same answer from nothing."""
    peer.reset()
    return timed(lambda: peer.append(ids[: LONG + APPEND]))


def read_ms(memory: torch.Tensor) -> float:
    return timed(lambda: float(memory.sum()))  # waits for a GPU


def checkpoint(folder: Path, shape: str) -> Path:
    path = folder / f"checkpoint-{shape}"
    if (path / "config.json").exists():
        return path
    if shape in {"4b", "9b"}:  # piece by piece: drawn at once they would need twice the memory
        write_checkpoint(SHAPES[shape], path)
    else:
        save_checkpoint(path, SHAPES[shape], init_params(SHAPES[shape], torch.Generator().manual_seed(0)))
    return path


def check(path: Path, ours: Ours, peer: LlamaCppPeer, vocabulary: int) -> None:
    """Check that both compute the same network: distance of each one's logits from those of the plain one in
    float32."""
    ids = random.Random(1).choices(range(vocabulary), k=280)
    plain = Ours(path, 512, None, "float32").llm
    far: dict[str, list[float]] = {"ours": [], "llama.cpp": []}
    for at in range(0, len(ids), 40):
        expected = plain.append(ids[at : at + 40])
        for who, found in (("ours", ours.llm.append(ids[at : at + 40])), ("llama.cpp", peer.fold(ids[at : at + 40]))):
            far[who].append(float((found - expected).norm() / expected.norm()))
    for who, values in far.items():
        print(f"{who}: logits differ from float32 by {median(values):.2e} of their size (at most {max(values):.2e})")


def files(args: argparse.Namespace) -> tuple[Path, Path]:
    """The model that ours reads, and the file for llama.cpp."""
    if args.gguf:
        args.shape = args.gguf.stem
        return args.gguf, args.gguf
    kind = FORMATS[args.dtype]
    path, gguf = checkpoint(args.folder, args.shape), args.folder / f"{args.shape}-{kind}.gguf"
    if args.llama and not gguf.exists():
        write_gguf(path, gguf, kind)
    return path, gguf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=FORMATS, default="bfloat16")
    parser.add_argument("--shape", choices=SHAPES, default="120m")
    parser.add_argument("--gguf", type=Path, help="a published file instead of random weights")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--llama", type=Path, help="a folder with llama.cpp's libraries (default: without llama.cpp)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "llm-bench")
    parser.add_argument("--check", action="store_true", help="only compare the logits of ours and of llama.cpp")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.llama and not FORMATS[args.dtype]:
        parser.error(f"llama.cpp has no {args.dtype}; leave --llama out")
    torch.set_num_threads(args.threads)
    path, gguf = files(args)
    vocabulary = read_config(path).vocab_size
    before, began = taken_bytes(args.device), perf_counter()
    ours = Ours(path, 2048, args.folder / "kernels" if args.device == "cpu" else None, args.dtype, args.device)
    ready_s = perf_counter() - began
    give_back_memory()  # as the assistant does once it is ready
    memory = {
        "packed_bytes": ours.weight_bytes(),
        "resident_bytes": taken_bytes(args.device) - before,
        "state_bytes": sum(b.nbytes for b in ours.ctx.buffers("llm", Role.STATE)),
        "ready_s": round(ready_s, 2),
    }
    peers: list[Peer] = [ours]
    if args.dtype == "bfloat16" and not args.gguf:
        peers += [Ours(path, 2048, None, args.dtype)] if args.device == "cpu" else []
        peers.append(TransformersPeer(path, torch.bfloat16, args.device))
    if args.llama:
        llama = LlamaCppPeer(args.llama, gguf, args.threads, 2048, vocabulary)
        peers.append(llama)
        if args.check:
            return check(path, ours, llama, vocabulary)
    report(run(ours, peers, args.rounds, vocabulary), memory, args, ours.ctx.describe())


def processor() -> str:
    """The processor's name and the instructions that the kernels here use."""
    info = Path("/proc/cpuinfo").read_text()
    name = next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), "")
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")
    return ", ".join([name or platform.machine(), *(kind for kind in wanted if f" {kind} " in info)])


def taken_bytes(device: str) -> int:
    """Memory taken by this process; on a GPU everything that is not free."""
    if device != "cpu":
        free, whole = torch.cuda.mem_get_info()
        return whole - free
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def run(ours: Ours, peers: Sequence[Peer], rounds: int, vocabulary: int) -> dict[tuple[str, str], list[float]]:
    """Times by (case, implementation); the first round only warms up."""
    ids = random.Random(7).choices(range(vocabulary), k=LONG + APPEND + 1)
    ours.reset()
    ours.llm.append(ids[:LONG])
    capsule = ours.llm.snapshot("warm")
    memory = torch.zeros(ours.weight_bytes() // 4, device=ours.ctx.device)
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        if turn == 1:
            times.clear()
        times["floor", "read"].append(read_ms(memory))
        for peer in peers:
            for case, ms in measure(peer, ids).items():
                times[case, peer.name].append(ms)
        times["warm turn 1000", "ours"].append(warm_turn(ours, capsule, ids))
        for peer in (peer for peer in peers if not isinstance(peer, Ours)):
            times["warm turn 1000", peer.name].append(cold_turn(peer, ids))
        print(f"round {turn} of {rounds}", file=sys.stderr)
    return times


def report(
    times: dict[tuple[str, str], list[float]], memory: dict[str, float], args: argparse.Namespace, device: str
) -> None:
    floor = median(times["floor", "read"])
    machine = f"{processor()}, {args.threads} threads" if args.device == "cpu" else device
    print(f"{args.shape}, {args.dtype}: {machine}, n = {args.rounds}, torch {torch.__version__}")
    resident, packed, state = (memory[f"{what}_bytes"] / 1e6 for what in ("resident", "packed", "state"))
    print(f"at rest {resident:.1f} MB, {resident / packed:.2f} x the {packed:.1f} of its matrices; state {state:.1f}")
    print(f"from the files to the last captured step: {memory['ready_s']} s")
    print(f"reading the weights once: {floor:.2f} ms. The peers' 'warm turn' is a cold one: they keep no state.")
    print(f"{'case':16} {'who':13} {'ms':>9} {'p10':>9} {'p90':>9} {'x floor':>8} {'ours/it':>8} {'target':>7}")
    for (case, who), values in sorted(times.items()):
        if case == "floor":
            continue
        low, *_, high = quantiles(values, n=10) if len(values) > 1 else values * 2
        share = median(times[case, "ours"]) / median(values)
        target = TARGETS.get((case, who))
        verdict = "" if target is None else f"{target:.2f} {'ok' if share <= target else 'missed'}"
        ms = median(values)
        print(f"{case:16} {who:13} {ms:9.2f} {low:9.2f} {high:9.2f} {ms / floor:8.2f} {share:8.2f} {verdict}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        rows = {f"{case} | {who}": values for (case, who), values in times.items()}
        told = {"machine": machine, "shape": args.shape, "dtype": args.dtype, "memory": memory, "ms": rows}
        args.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
