"""The voice engine's speed: ms per row, codec windows, real-time factor, first sound by policy, each beside its floor.

    python -m benchmarks.tts                          random weights, about 25 M parameters, codec at 1/8 width, CPU
    python -m benchmarks.tts --model PATH --device cuda --dtype bfloat16

The floor of a row is the bytes of weights it reads over the read bandwidth measured in the same run. Random weights
keep bytes, shapes and latency, but not the end of speech or its sound, so lengths are fixed here.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from capsules import ExecContext, Role
from tts_engine.engine import HiggsTTS
from tts_engine.sampling import VoiceSampling

clock: Callable[[], float] = time.perf_counter
TEXT = "The weather is fine today, and the train leaves in ten minutes."
ROWS = 160


def timed(ctx: ExecContext, work: Callable[[], object], repeats: int) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for _ in range(repeats):
        ctx.synchronize()
        began = clock()
        work()
        ctx.synchronize()
        times.append((clock() - began) * 1e3)
    return times


def spread(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "median": statistics.median(times),
        "p10": ordered[len(times) // 10],
        "p90": ordered[-1 - len(times) // 10],
        "n": len(times),
    }


def read_bandwidth(ctx: ExecContext, nbytes: int) -> float:
    """Bytes per second of one pass over `nbytes` of memory, best of seven: a matrix-vector product."""
    columns = 1024
    matrix = torch.ones(max(1, nbytes // 4 // columns), columns, device=ctx.device)
    vector = torch.ones(columns, device=ctx.device)
    times = timed(ctx, lambda: torch.mv(matrix, vector), 7)
    return matrix.numel() * 4 / (min(times) / 1e3)


def row_bytes(tts: HiggsTTS, ctx: ExecContext) -> int:
    """Weight bytes that every row reads: the whole backbone except the text embedding and the cursor's tables."""
    skipped = ("text_embedding", "phone_embedding", "rows_embedding")
    return sum(
        b.nbytes
        for b in ctx.buffers("tts", Role.WEIGHT)
        if b.name.startswith("tts.w.") and not any(s in b.name for s in skipped)
    )


def first_sound(tts: HiggsTTS, ctx: ExecContext, policy: str, repeats: int) -> tuple[list[float], list[float], int]:
    """(ms from the call to the first chunk on the host, smallest lead in ms while playback continues, rows before
    it)."""
    firsts, leads, rows = [], [], 0
    for _ in range(repeats):
        tts.open()
        ctx.synchronize()
        began, first, made, lead = clock(), 0.0, 0.0, float("inf")
        tts.begin(TEXT, policy, max_rows=ROWS)
        while tts.step().kind != "idle":
            while (sound := tts.take_audio()) is not None:
                now = (clock() - began) * 1e3
                if made:
                    lead = min(lead, first + made - now)
                else:
                    first, rows = now, tts.pieces[0].frames + tts.config.audio.delay
                made += sound.frames * 40.0
        firsts.append(first)
        leads.append(lead)
    return firsts, leads, rows


def fast_error(tts: HiggsTTS) -> dict[str, float]:
    """Root mean square of (fast - exact) relative to that of exact, and its peak, where the two differ."""
    sounds = {}
    for policy in ("exact", "fast"):
        tts.open()
        tts.begin(TEXT, policy, max_rows=ROWS)
        parts = []
        while tts.step().kind != "idle":
            while (sound := tts.take_audio()) is not None:
                parts.append(sound.pcm)
        sounds[policy] = torch.cat(parts)[: 960 * 30]
    error = sounds["fast"] - sounds["exact"]
    differs = int((error.abs() > 1e-5).nonzero().max()) + 1 if bool((error.abs() > 1e-5).any()) else 0
    if not differs:
        return {"ms": 0.0, "relative_rms": 0.0, "peak": 0.0}
    relative = error[:differs].square().mean().sqrt() / sounds["exact"][:differs].square().mean().sqrt()
    return {"ms": differs / 24, "relative_rms": float(relative), "peak": float(error.abs().max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a checkpoint directory; default: random weights")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--kernels", type=Path, help="CPU only: a folder for compiled kernels; default: torch's own")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--cpu-time", action="store_true", help="count processor time instead, for a shared machine"
    )
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args()
    if options.cpu_time:
        global clock  # noqa: PLW0603  one clock for all measurements of this run
        clock = time.process_time
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = options.model or random_model(Path(folder))
        ctx = ExecContext(options.device, options.kernels)
        tts = HiggsTTS.load(path, ctx, dtype=options.dtype, max_positions=1024)
        report(tts, ctx, options)


def random_model(folder: Path) -> Path:
    """About 25 M parameters in the published structure, codec at 1/8 width."""
    from tests.tts_engine.miniature import Size, write_miniature

    size = Size(
        hidden=384, layers=10, heads=6, kv_heads=2, head_dim=64, intermediate=1152, encoder_width=8, decoder_width=128,
        latent=32, codebook_dim=8, end_scale=0.0,
    )  # fmt: skip
    return write_miniature(folder, size)


def report(tts: HiggsTTS, ctx: ExecContext, options: argparse.Namespace) -> None:
    tts.set_sampling(VoiceSampling(seed=1))
    nbytes = row_bytes(tts, ctx)
    bandwidth = read_bandwidth(ctx, max(nbytes, 64 << 20))
    floor = nbytes / bandwidth * 1e3
    parameters = sum(b.tensor.numel() for b in ctx.buffers("tts", Role.WEIGHT) if b.name.startswith("tts.w."))
    print(
        f"{platform.machine()} {ctx.describe()}, {options.threads} threads, {options.dtype}, {parameters / 1e6:.1f} M"
    )
    figures: dict[str, object] = {"parameters": parameters, "row_bytes": nbytes, "bandwidth": bandwidth}

    costs = tts.measure(rows=24, clock=clock)
    print(f"row {costs.row_ms:.2f} ms, codec {costs.frame_ms:.2f} ms/frame; first chunks (frames, look-ahead):")
    for policy in ("exact", "fast"):
        print(f"  {policy} {[(c.frames, c.ahead) for c in tts.schedule(policy).first[:10]]}")

    tts.open()
    tts.begin(TEXT, max_rows=ROWS)
    prefill = timed(ctx, tts.step, 1)
    rows = timed(ctx, tts.step, ROWS - 20)
    figures["prefill_ms"], figures["row_ms"] = prefill[0], spread(rows)
    print(f"prefill           {prefill[0]:8.2f} ms   {tts.position - len(rows)} positions")
    share = statistics.median(rows) / floor
    print(
        f"row               {_line(spread(rows))}   x floor {share:.2f} "
        f"(floor {floor:.2f} ms at {bandwidth / 1e9:.1f} GB/s)"
    )

    for frames in tts._graphs.shapes.windows:
        times = timed(ctx, lambda frames=frames: tts._graphs.window(frames), options.repeats)
        figures[f"window_{frames}_ms"] = spread(times)
        print(f"window {frames:3d} frames {_line(spread(times))}")

    whole = []
    for _ in range(options.repeats):
        tts.open()
        tts.begin(TEXT, "steady", max_rows=ROWS)
        frames = 0
        began = clock()
        while tts.step().kind != "idle":
            while (sound := tts.take_audio()) is not None:
                frames += sound.frames
        whole.append((clock() - began) / (frames * 0.04))
    figures["real_time_factor"] = spread(whole)
    print(f"real-time factor  {_line(spread(whole))}   codec included")

    for policy in ("exact", "fast"):
        firsts, leads, count = first_sound(tts, ctx, policy, options.repeats)
        figures[f"first_sound_{policy}_ms"] = spread(firsts)
        figures[f"smallest_lead_{policy}_ms"] = min(leads)
        print(
            f"first sound {policy:5s} {_line(spread(firsts))}   {count} rows, x floor of the rows "
            f"{statistics.median(firsts) / (floor * count):.2f}, smallest lead {min(leads):.0f} ms"
        )
    error = fast_error(tts)
    figures["fast_error"] = error
    print(
        f"fast against exact: relative rms {error['relative_rms']:.3f}, peak {error['peak']:.4f}, "
        f"over the first {error['ms']:.0f} ms"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


def _line(s: dict[str, float]) -> str:
    return f"{s['median']:8.2f} (p10 {s['p10']:.2f}, p90 {s['p90']:.2f}, n {s['n']})"


if __name__ == "__main__":
    main()
