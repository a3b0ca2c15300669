"""The delta-net kernels of a row and of a chunk in Triton's interpreter, against the mixer in float64, token by token.

Run as its own process with TRITON_INTERPRET=1, or on a card with the argument "cuda"; prints one JSON line of error
ratios. "plain" is the error of the plain chunked form in float32, beside ours.
"""

import json

import torch
from torch import Tensor
from torch.nn import functional as F

from llm_engine.config import LINEAR, LLMConfig
from llm_engine.delta_row import launch_delta_row
from llm_engine.delta_rows import launch_delta_rows
from llm_engine.gated_delta import recurrence
from llm_engine.layers import LinearWeights, delta_chunk
from tests.capsules.interpreted_kernels import draw, on_device, ratio

CASES = [  # value heads per key head, rows, tokens among them, the same token throughout
    (1, 8, 8, False), (2, 24, 17, False), (3, 40, 40, False), (2, 64, 64, False), (2, 64, 2, False), (1, 64, 63, True),
]  # fmt: skip


def config_of(share: int) -> LLMConfig:
    return LLMConfig(
        vocab_size=8, hidden_size=40, intermediate_size=8, layer_types=(LINEAR,), num_attention_heads=1,
        num_key_value_heads=1, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=2 * share,
        linear_key_head_dim=16, linear_value_head_dim=32,
    )  # fmt: skip


def weights_of(config: LLMConfig, dtype: torch.dtype) -> LinearWeights:
    heads, width = config.linear_num_value_heads, config.value_dim
    return LinearWeights(
        qkvz=draw(config.conv_dim + width, 40, dtype=dtype) / 4, ba=draw(2 * heads, 40, dtype=dtype) / 4,
        conv=draw(4, config.conv_dim) / 2, decay=-draw(heads).exp(), dt_bias=draw(heads), norm=draw(32),
        out=torch.eye(width, dtype=dtype),
    )  # fmt: skip


def exact(
    x: Tensor, w: LinearWeights, config: LLMConfig, window: Tensor, memory: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """Rows [count, Hv·N] and the memory after them, all in float64 from the projections on."""
    made = (x @ w.qkvz.T).double()[:count]
    mixed, gate = made.split((config.conv_dim, config.value_dim), -1)
    history = torch.cat((window.double(), mixed))
    convolved = F.silu(torch.stack([(history[t : t + 4] * w.conv.double()).sum(0) for t in range(count)]))
    q, k, v = convolved.split((config.key_dim, config.key_dim, config.value_dim), -1)
    q, k = (part.view(count, -1, 16) for part in (q, k))
    q, k = (part * (part.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for part in (q, k))
    b, a = (x @ w.ba.T).double()[:count].chunk(2, -1)
    g = w.decay.double() * F.softplus(a + w.dt_bias.double())
    out, memory = recurrence(q * 16**-0.5, k, v.view(count, -1, 32), g, b.sigmoid(), memory.double())
    normed = out * (out.square().mean(-1, keepdim=True) + config.rms_norm_eps).rsqrt() * w.norm.double()
    return normed.flatten(1) * F.silu(gate), memory


def main() -> None:
    found: dict[str, float] = {}
    for dtype in (torch.float32, torch.bfloat16):
        kind = str(dtype).removeprefix("torch.")
        for share, rows, count, same in CASES:
            config = config_of(share)
            w, memory = weights_of(config, dtype), draw(2 * share, 16, 32)
            window = draw(3, config.conv_dim, dtype=dtype)
            x = draw(1, 40, dtype=dtype).repeat(rows, 1) if same else draw(rows, 40, dtype=dtype)
            want, state = exact(x, w, config, window, memory, count)
            mixed, gate = (x @ w.qkvz.T).split((config.conv_dim, config.value_dim), -1)
            moved, ours, real = window.clone(), memory.clone(), torch.tensor([count])
            got = launch_delta_rows(
                x, mixed, gate, w.ba, moved, w.conv, w.decay, w.dt_bias, w.norm, ours, real, config.rms_norm_eps
            )
            plain_window, plain_memory = window.clone(), memory.clone()
            plain = delta_chunk(x, w, config, plain_window, plain_memory, real)
            case = f"{kind} {count} of {rows}, share {share}"
            found[f"{case}: out"], found[f"{case}: memory"] = ratio(got[:count], want), ratio(ours, state)
            found[f"{case}: out plain"] = ratio(plain[:count], want)
            found[f"{case}: memory plain"] = ratio(plain_memory, state)
            found[f"{case}: window"] = float(not torch.equal(moved, plain_window))
        config = config_of(2)
        w, window, memory = weights_of(config, dtype), draw(3, config.conv_dim, dtype=dtype), draw(4, 16, 32)
        moved, ours, x = window.clone(), memory.clone(), draw(3, 40, dtype=dtype)
        want, state = exact(x, w, config, window, memory, 3)
        mixed, gate = (x @ w.qkvz.T).split((config.conv_dim, config.value_dim), -1)
        rest = (w.conv, w.decay, w.dt_bias, w.norm, ours, config.rms_norm_eps)
        for t in range(3):
            row = slice(t, t + 1)
            got = launch_delta_row(x[row], mixed[row], gate[row], w.ba, moved, *rest)
        found[f"{kind} row by row: out"] = ratio(got[0], want[2])
        found[f"{kind} row by row: memory"] = ratio(ours, state)
        found[f"{kind} row by row: window"] = float(not torch.equal(moved, mixed))
    print(json.dumps(found))


if __name__ == "__main__":
    with on_device():
        main()
