"""How much is folded again by requests that send their whole talk: a chat, a document with questions, new personas.

    python benchmarks/reuse.py [--questions 20] [--json benchmarks/results/reuse.json]

Two models: the shipped one, and random weights in a shape of 120 million (bytes and times are those of a real one, its
words are not). Each request is made as `/v1/chat/completions` makes it, once to a process that knows earlier requests
and once to a fresh one; the states after both are compared byte by byte. Times are of the processor, over all threads,
because others may use the machine. With both models it takes about five minutes of one core.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

import llm_engine
from assistant.contracts import Line, Prompt, PromptReady, ReplyEnd, ReplyOptions, ReplyPiece
from assistant.device.deployment import Deployment
from assistant.device.thread import EngineThread
from assistant.llm.language import load_language
from assistant.llm.local import LocalLLM
from capsules import ExecContext
from capsules.registry import Budgets, Registry
from llm_engine import HybridLLM, Sampling
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.model import init_params
from llm_engine.weights import save_checkpoint

TINY = Path(llm_engine.__file__).parent / "tiny"
LARGE = LLMConfig(
    vocab_size=2560, hidden_size=768, intermediate_size=3072, layer_types=(LINEAR, LINEAR, LINEAR, FULL) * 3,
    num_attention_heads=12, num_key_value_heads=4, head_dim=64, linear_num_key_heads=12, linear_num_value_heads=12,
    linear_key_head_dim=64, linear_value_head_dim=64,
)  # fmt: skip
SYSTEM = "You are Ada, a friendly voice assistant. Answer in one or two short sentences."
ANSWER_TOKENS = 16
DOCUMENT_TOKENS = 2200


@dataclass(frozen=True)
class Asked:
    """One request: its tokens, how many were found, processor time until its first token, and its outcome."""

    tokens: int
    cached: int
    cpu_ms: float
    text: str
    state: str


class Requests:
    """A language model that gets requests the way the HTTP endpoint sends them."""

    def __init__(self, llm: LocalLLM) -> None:
        self.llm = llm
        self._number = 0

    async def ask(self, prompt: Prompt) -> Asked:
        self._number += 1
        talk, text, ready, cpu, state = f"http {self._number}", "", None, 0.0, ""
        begin = time.process_time()
        async for piece in self.llm.reply(talk, prompt, ReplyOptions(talk, ANSWER_TOKENS, reusable=True)):
            if isinstance(piece, PromptReady):
                ready = piece
            elif not cpu:
                cpu = (time.process_time() - begin) * 1000
            text += _words(piece)
            if isinstance(piece, ReplyEnd):
                state = digest(self.llm.engine)
        told = replace(prompt, tools=(), lines=(*prompt.lines, Line("assistant", text)))
        await self.llm.publish_prefix(talk, told)
        assert ready is not None
        return Asked(ready.input_tokens, ready.cached_tokens, cpu, text, state)


def _words(piece: ReplyPiece) -> str:
    return getattr(piece, "text", "")


def digest(engine: HybridLLM) -> str:
    """A digest of all bytes of the engine's state."""
    found = hashlib.sha256()
    for _, tensor in sorted(engine.snapshot().tensors.items()):
        found.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


@asynccontextmanager
async def fresh(engine: HybridLLM, folder: Path) -> AsyncIterator[Requests]:
    """A process without any earlier request."""
    engine.reset()
    ctx = engine._ctx
    thread = EngineThread()
    registry = Registry.standard(ctx, Budgets(host_bytes=1 << 31), time.time)
    language = load_language(folder)
    thread.start()
    try:
        yield Requests(LocalLLM(Deployment(ctx, thread, registry), engine, language, "bench", Sampling.greedy()))
    finally:
        thread.stop()
        await asyncio.to_thread(thread.join)


async def cold(engine: HybridLLM, folder: Path, prompt: Prompt) -> Asked:
    async with fresh(engine, folder) as requests:
        return await requests.ask(prompt)


def document(folder: Path) -> str:
    """A text of this many tokens."""
    encode, text = load_language(folder).encode, []
    number = 0
    while len(encode(" ".join(text))) < DOCUMENT_TOKENS:
        number += 1
        text.append(f"Entry {number}: the lamp of room {number * 7 % 90} was changed on day {number * 13 % 31}.")
    return " ".join(text)


async def chat(engine: HybridLLM, folder: Path) -> list[dict[str, object]]:
    """Turns of a chat; `shared`: tokens that a request has in common with the previous one and the words of its answer,
    whose closing mark may be found too."""
    lines: tuple[Line, ...] = (Line("user", "count to five"),)
    rows: list[dict[str, object]] = []
    encode = load_language(folder).encode
    async with fresh(engine, folder) as requests:
        found = []
        for turn in range(4):
            prompt = Prompt(SYSTEM, (), lines)
            made = await requests.ask(prompt)
            found.append((prompt, made))
            lines = (*lines, Line("assistant", made.text), Line("user", f"what is {turn} plus {turn}"))
    for (prompt, made), before in zip(found[1:], found, strict=False):
        shared = before[1].tokens + len(encode(before[1].text.strip()))
        alone = await cold(engine, folder, prompt)
        rows.append({
            "tokens": made.tokens, "cached": made.cached, "shared": shared, "share": round(made.cached / shared, 4),
            "equal": (made.text, made.state) == (alone.text, alone.state),
        })  # fmt: skip
    return rows


async def questions(engine: HybridLLM, folder: Path, count: int, colds: int) -> dict[str, object]:
    """One document, in one message with its question."""
    text = document(folder)
    asked = [f"{text}\n\nOn which day was lamp {number} changed?" for number in range(count)]
    prompts = [Prompt(SYSTEM, (), (Line("user", one),)) for one in asked]
    async with fresh(engine, folder) as requests:
        warm = [await requests.ask(prompt) for prompt in prompts]
    alone = [await cold(engine, folder, prompt) for prompt in prompts[1 : colds + 1]]
    cold_ms = statistics.median(one.cpu_ms for one in alone)
    return {
        "tokens": warm[0].tokens, "cached": [one.cached for one in warm], "cpu_ms": [one.cpu_ms for one in warm],
        "cold_cpu_ms": [one.cpu_ms for one in alone],
        "second_over_cold": round(warm[1].cpu_ms / cold_ms, 4),
        "later_over_cold": round(statistics.median(one.cpu_ms for one in warm[1:]) / cold_ms, 4),
        "equal": [(one.text, one.state) == (two.text, two.state) for one, two in zip(warm[1:], alone, strict=False)],
    }  # fmt: skip


async def personas(engine: HybridLLM, folder: Path, rounds: int = 5) -> dict[str, object]:
    """Every listed persona, the first time and later: from the switch until the next token could be made."""
    names = [f"persona/{number}" for number in range(8)]
    listed = {name: Prompt(f"You are {name}. " + "Be kind, brief and exact. " * 100) for name in names}
    rows: dict[str, list[float]] = {name: [] for name in names}
    ways: set[str | None] = set()
    async with fresh(engine, folder) as requests:
        llm = requests.llm
        made = await llm.warm(listed)
        async for _ in llm.reply("talk", Prompt(SYSTEM, (), (Line("user", "hello"),)), ReplyOptions("first", 4)):
            pass
        await llm.forget_talk("talk")
        before = llm.engine.append
        appended: list[int] = []
        try:
            llm.engine.append = lambda ids, cancel=None: appended.append(len(ids)) or before(ids, cancel)  # type: ignore[method-assign, func-returns-value]
            for _ in range(rounds):
                for name in names:
                    begin = time.perf_counter()
                    await llm.prepare("talk", listed[name])
                    rows[name].append((time.perf_counter() - begin) * 1000)
                    ways.add("restore" if not appended else "fold")
        finally:
            llm.engine.append = before  # type: ignore[method-assign]
        again = await llm.warm(listed)
    times = [ms for row in rows.values() for ms in row]
    return {
        "tokens": [synced.position for synced in made.values()], "fold_ms": [synced.ms for synced in made.values()],
        "first_wall_ms": [row[0] for row in rows.values()], "wall_ms": rows, "median_wall_ms": statistics.median(times),
        "worst_wall_ms": max(times), "ways": sorted(ways, key=str), "folded_tokens": sum(appended),
        "listed_again": sorted({str(synced.what) for synced in again.values()}),
    }  # fmt: skip


async def measure(folder: Path, count: int, colds: int) -> dict[str, object]:
    engine = HybridLLM.load(folder, ExecContext("cpu"), max_positions=4096)
    parameters = sum(b.tensor.numel() for b in engine._ctx.buffers() if b.role == "weight")
    found: dict[str, object] = {"parameters": parameters}
    found["chat"] = await chat(engine, folder)
    found["document"] = await questions(engine, folder, count, colds)
    found["personas"] = await personas(engine, folder)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, object] = {"threads": 1, "torch": torch.__version__}
    results["small"] = asyncio.run(measure(TINY, args.questions, args.questions - 1))
    _tell(args.json, results)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "large"
        shutil.copytree(TINY, folder)
        save_checkpoint(folder, LARGE, init_params(LARGE, torch.Generator().manual_seed(1), deviation=0.02))
        results["120m"] = asyncio.run(measure(folder, args.questions, 3))
    _tell(args.json, results)


def _tell(file: Path | None, results: dict[str, object]) -> None:
    text = json.dumps(results, indent=1)
    print(text, flush=True)
    if file is not None:
        file.write_text(text + "\n")


if __name__ == "__main__":
    main()
