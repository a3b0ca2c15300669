"""A small hybrid model with every kind of state: attention over a growing prefix, a recurrent fold, a conv window."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsules import Buffer, Capsule, Checkpoint, ExecContext, Fingerprint, Prefix, Role, ShapeKey, Whole
from capsules import checkpoint as take_checkpoint
from capsules import restore as put_back
from capsules import rollback as roll_back
from capsules import snapshot as freeze

WIDTH, CAPACITY, VOCABULARY = 16, 256, 37
STEP = ShapeKey(tokens=1)
BACKENDS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@dataclass(frozen=True)
class ToySampling:
    seed: int | None = None  # None is greedy

    def __str__(self) -> str:
        return "greedy" if self.seed is None else f"seed {self.seed}"


class ToyHybrid:
    """One token in, one token out; `forget` names a state buffer to leave out of the closure (a mutation)."""

    def __init__(self, ctx: ExecContext, scope: str = "toy", forget: str = "", dtype: torch.dtype = torch.float32):
        self.ctx, self.scope = ctx, scope
        noise = torch.Generator().manual_seed(5)

        def weight(name: str, *shape: int) -> Tensor:
            value = torch.randn(shape, generator=noise) / shape[-1] ** 0.5
            return ctx.adopt(f"{scope}.w.{name}", value.to(ctx.device, dtype)).tensor

        def state(name: str, shape: list[int], kind: torch.dtype, live: Whole | Prefix | None = None) -> Tensor:
            role = Role.SCRATCH if name == forget else Role.STATE
            return ctx.buffer(f"{scope}.{name}", shape, kind, role=role, live=live).tensor

        self.embed = weight("embed", VOCABULARY, WIDTH)
        self.mix = weight("mix", 4, WIDTH)
        self.qkv = weight("qkv", 3 * WIDTH, WIDTH)
        self.kv = state("kv", [2, CAPACITY, WIDTH], dtype, Prefix(1))
        self.memory = state("memory", [WIDTH, WIDTH], torch.float32)
        self.window = state("window", [3, WIDTH], dtype)
        self.token = state("token", [1], torch.int64)
        self.position = state("position", [1], torch.int64)
        self.seed = state("seed", [1], torch.int64)
        self.logits = ctx.buffer(f"{scope}.logits", [VOCABULARY], torch.float32, role=Role.IO).tensor
        self.rows = ctx.adopt(f"{scope}.w.rows", torch.arange(CAPACITY, device=ctx.device)).tensor
        self.ids = ctx.adopt(f"{scope}.w.ids", torch.arange(VOCABULARY, device=ctx.device)).tensor
        self.graph = ctx.graph(f"{scope}.step", pool=ctx.pool(scope))
        self.graph.capture(STEP, self.step)
        self.fingerprint = Fingerprint.of(ctx, scope, weights="toy", code="toy/1")

    def step(self) -> None:
        x = self.embed[self.token]  # [1, D]
        taps = torch.cat([self.window, x])  # [4, D]
        self.window.copy_(taps[1:])
        h = torch.tanh((taps * self.mix).sum(0, keepdim=True) + x)
        q, k, v = (h @ self.qkv.T).split(WIDTH, -1)
        self.kv.index_copy_(1, self.position, torch.stack([k, v]))
        scores = (self.kv[0] @ q[0]).float().masked_fill(self.rows > self.position, float("-inf"))
        seen = scores.softmax(0).to(h.dtype) @ self.kv[1]
        self.memory.mul_(0.97).add_(k.float().T @ v.float())
        out = torch.tanh(seen + (q.float() @ self.memory)[0].to(h.dtype) * 0.3)
        logits = (self.embed @ out).float() * 3
        hashed = ((self.ids + 1) * 2654435761 + self.position * 40503 + self.seed * 69069) % 1000003
        noise = -torch.log(-torch.log((hashed.double() + 0.5) / 1000003)).float()
        self.logits.copy_(logits)
        self.token.copy_(torch.where(self.seed > 0, logits + noise, logits).argmax(-1, keepdim=True))
        self.position.add_(1)

    def open(self, prompt: list[int], sampling: ToySampling) -> "ToyHybrid":
        for buffer in self.ctx.buffers(self.scope, Role.STATE):
            buffer.tensor.zero_()
        for buffer in self.ctx.buffers(self.scope, Role.SCRATCH):
            buffer.tensor.zero_()
        self.seed.fill_(sampling.seed or 0)
        for token in prompt:
            self.token.fill_(token)
            self.graph.replay(STEP)
        return self

    def decode(self, n: int) -> list[int]:
        tokens = []
        for _ in range(n):
            self.graph.replay(STEP)
            tokens.append(int(self.token))
        return tokens

    def snapshot(self, label: str = "") -> Capsule:
        return freeze(self.ctx, self.scope, int(self.position), self.fingerprint, label=label)

    def restore(self, capsule: Capsule) -> None:
        put_back(self.ctx, capsule, self.fingerprint)

    def checkpoint(self) -> Checkpoint:
        return take_checkpoint(self.ctx, self.scope, int(self.position))

    def rollback(self, point: Checkpoint) -> None:
        roll_back(self.ctx, point)


def scramble(ctx: ExecContext, scope: str) -> None:
    """Large finite junk in all state and scratch, so that masked reads stay harmless and stale ones do not."""
    for buffer in ctx.buffers(scope):
        if buffer.role in (Role.STATE, Role.SCRATCH):
            junk = 3 if buffer.tensor.dtype == torch.int64 else 777.0
            buffer.tensor.fill_(junk)


def dead_view(buffer: Buffer, position: int) -> Tensor:
    """The part that no step at `position` may depend on."""
    if isinstance(buffer.live, Whole):
        return buffer.tensor.new_empty(0)
    capacity = buffer.tensor.shape[buffer.live.axis]
    return buffer.tensor.narrow(buffer.live.axis, position, capacity - position)


def poison_dead(ctx: ExecContext, scope: str, position: int) -> None:
    """Junk in every dead extent and in all scratch."""
    for buffer in ctx.buffers(scope, Role.STATE):
        dead_view(buffer, position).fill_(999.0)
    for buffer in ctx.buffers(scope, Role.SCRATCH):
        buffer.tensor.fill_(999)


def own_pages(address: int) -> int:
    """Bytes of the mapping at an address that lie in no file: pages that somebody wrote to."""
    at, found = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if head := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            at = int(head[1], 16) <= address < int(head[2], 16)
        elif at and line.startswith("Anonymous:"):
            found = int(line.split()[1]) * 1024
    return found
