"""The fused decode kernel in Triton's interpreter against the plain mixer; prints one JSON line of error ratios.

Run as its own process with TRITON_INTERPRET=1, because the interpreter is chosen when a kernel is defined.
"""

import json

import torch

from llm_engine.config import LINEAR, LLMConfig
from llm_engine.delta_kernel import launch_delta_step
from llm_engine.layers import LinearWeights, delta_step
from tests.capsules.interpreted_kernels import draw, ratio


def main() -> None:
    found: dict[str, float] = {}
    for share in (1, 2, 3):
        config = LLMConfig(
            vocab_size=8, hidden_size=32, intermediate_size=8, layer_types=(LINEAR,), num_attention_heads=1,
            num_key_value_heads=1, head_dim=8,
            linear_num_key_heads=2, linear_num_value_heads=2 * share, linear_key_head_dim=16, linear_value_head_dim=32,
        )  # fmt: skip
        for dtype in (torch.float32, torch.bfloat16):
            heads, width = config.linear_num_value_heads, config.value_dim
            w = LinearWeights(
                qkvz=draw(config.conv_dim + width, 32, dtype=dtype) / 4, ba=draw(2 * heads, 32, dtype=dtype) / 4,
                conv=draw(4, config.conv_dim) / 2, decay=-draw(heads).exp(), dt_bias=draw(heads), norm=draw(32),
                out=torch.eye(width, dtype=dtype),
            )  # fmt: skip
            window, memory = draw(3, config.conv_dim, dtype=dtype), draw(heads, 16, 32)
            ours_window, ours_memory = window.clone(), memory.clone()
            for _ in range(3):
                x = draw(1, 32, dtype=dtype)
                want = delta_step(x, w, config, window, memory)
                mixed, gate = (x @ w.qkvz.T).split((config.conv_dim, width), -1)
                got = launch_delta_step(
                    mixed, gate, x @ w.ba.T, ours_window, w.conv, w.decay, w.dt_bias, w.norm, ours_memory,
                    config.rms_norm_eps,
                )  # fmt: skip
            kind = str(dtype).removeprefix("torch.")
            found[f"out {kind} share {share}"] = ratio(got, want)
            found[f"memory {kind} share {share}"] = ratio(ours_memory, memory)
            found[f"window {kind} share {share}"] = ratio(ours_window, window)
    print(json.dumps(found))


if __name__ == "__main__":
    with torch.no_grad():
        main()
