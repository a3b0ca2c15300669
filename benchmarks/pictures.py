"""The cost of seeing: time through a vision tower by size, and a reply's first token and first sound with a picture.

    python -m benchmarks.pictures [--text tiny|0.8b] [--rounds 5] [--threads 2] [--out benchmarks/results/NAME.json]
    python -m benchmarks.pictures --only sound --rounds 10 --out benchmarks/results/picture_sound_cpu.json

The tower has the published shape of the 0.8B's (12 blocks of 768) or, with --text tiny, also a small one (4 of 128) in
front of the shipped model; weights are random, which keeps times but shows nothing about sight. Each size is given in
three ways: milliseconds, processor milliseconds, and × the floor, its multiplications at the speed of a large matrix
product of the same run. Then a talk: a picture is shown one second before the words are over, with the words, or not at
all, in turns; the time runs from the words to the first token, wall clock, so nothing else may run. Finally (tiny
alone) the whole assistant in real time: the shipped voice asks, the serving ears hear it, each question once with a
picture sent one second before its last sample and once without; the time runs from that sample to the first of the
reply. The shipped model's shape always says one sentence there: it works as hard, and both ways say the same. Some
three minutes with tiny and as many for ten rounds of sound, five with 0.8b (2 GB of disk, 4.1 GB of memory).
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.base.ids import random_ids
from assistant.base.picture import Picture
from assistant.bench.turns import Caller, MeasuredTurn, Question, questions
from assistant.contracts import Line, PlacedPicture, Prompt, ReplyOptions, TextPiece
from assistant.device.deployment import Deployment
from assistant.device.execution import open_context
from assistant.device.thread import EngineThread
from assistant.events import REPLY_RATE, CreateItem, Message, PicturePart, SemanticVad, Settings
from assistant.llm.language import Language, load_language
from assistant.llm.local import LocalLLM
from benchmarks.llm_load import config_of
from benchmarks.parrot import TINY, parrot
from capsules.journal import Journals
from capsules.registry import Budgets, Registry
from capsules.weights import catalogue
from llm_engine import HybridLLM, LLMConfig, Sampling
from llm_engine.pixels import FittedPicture, fit
from llm_engine.vision_config import VisionConfig
from llm_engine.vision_weights import tower_parts

PUBLISHED = {"depth": 12, "hidden_size": 768, "num_heads": 12, "intermediate_size": 3072}
SMALL = {"depth": 4, "hidden_size": 128, "num_heads": 4, "intermediate_size": 384}
ROWS = ((8, 8), (8, 16), (12, 16), (15, 20))
AHEAD_S = 1.0
ASKED = ("what time is it", "who are you", "what is seven plus five", "what day is it today")
REPLY = "I can see a red cup, and beside it two green apples."
SAID = "{{- '<|im_start|>user\\n ' + message.content | trim + '<|im_end|>\\n' }}"
"""The user's turn in the shipped model's chat format,"""
SAID_AND_SHOWN = """{%- set said = namespace(text='') %}
{%- for part in ([{'text': message.content}] if message.content is string else message.content) %}
{%- set said.text = said.text + (part.text or '<|image_pad|>') %}
{%- endfor %}
{{- '<|im_start|>user\\n ' + said.text | trim + '<|im_end|>\\n' }}"""
"""and with pictures in it."""


def with_tower(text: Path, folder: Path, tower: dict[str, int], hidden: int) -> Path:
    """A checkpoint of a text model's own files and a random tower."""
    config = tower | {"out_hidden_size": hidden, "num_position_embeddings": 2304}
    generator = torch.Generator().manual_seed(0)
    tensors = {}
    for part in tower_parts(VisionConfig.parse(config, {})):
        shape = (part.shape[0], 3, 2, 16, 16) if part.name == "patch" else part.shape
        value = torch.randn(shape, generator=generator) * 0.02
        tensors[f"model.visual.{part.source}"] = (value + (part.name.endswith("norm"))).bfloat16()
    folder.mkdir()
    save_file(tensors, folder / "tower.safetensors", metadata={"format": "pt"})
    placed = dict.fromkeys(tensors, "tower.safetensors")
    for file in text.glob("*.safetensors"):
        (folder / file.name).symlink_to(file)
        placed |= dict.fromkeys(catalogue(file), file.name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    raw = json.loads((text / "config.json").read_text()) | {"vision_config": config, "image_token_id": 0}
    (folder / "config.json").write_text(json.dumps(raw))
    return folder


def shown(rows: int, columns: int, seed: int) -> FittedPicture:
    pixels = np.random.default_rng(seed).integers(0, 256, (rows * 32, columns * 32, 3), np.uint8)
    return fit(pixels, 1024, 1 << 24)


def multiplications(config: VisionConfig, rows: int) -> float:
    """Multiplications for one picture, counted as two operations each."""
    n, h = 4 * rows, config.hidden_size
    block = 2 * n * h * (4 * h + 2 * config.intermediate_size) + 4 * n * n * h
    merger = 2 * rows * (4 * h) * (4 * h + config.out_hidden_size)
    return float(2 * n * 768 * h + config.depth * block + merger)


def product_speed(dtype: torch.dtype) -> float:
    """Operations per second of a large product, the best of several."""
    a, b = torch.randn(1024, 2048).to(dtype), torch.randn(2048, 2048).to(dtype)
    best = min(_seconds(lambda: a @ b) for _ in range(8))
    return 2 * 1024 * 2048 * 2048 / best


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def look_times(llm: HybridLLM, rounds: int) -> list[dict[str, float]]:
    """Times by size; the first picture of a size, which captures, is left out."""
    assert llm.eyes is not None
    speed = product_speed(torch.float32)
    made = []
    for rows, columns in ROWS:
        walls, processor, longest = [], [], 0.0
        for number in range(rounds + 1):
            work, began, spent = llm.eyes.look(shown(rows, columns, number)), time.perf_counter(), time.process_time()
            step = began
            for _ in work:
                longest = max(longest, time.perf_counter() - step) if number else 0.0
                step = time.perf_counter()
            if number:
                walls.append(time.perf_counter() - began)
                processor.append(time.process_time() - spent)
        floor = multiplications(llm.eyes.config, rows * columns) / speed
        made.append({"rows": rows * columns, "ms": median(walls) * 1e3, "processor_ms": median(processor) * 1e3,
                     "floor_ms": floor * 1e3, "floors": median(walls) / floor, "longest_step_ms": longest * 1e3,
                     "n": rounds})  # fmt: skip
    return made


class TurnTimer:
    """Turns of a model in real time."""

    def __init__(self, llm: LocalLLM) -> None:
        self._llm = llm
        self._count = 0

    async def first_token(self, ahead_s: float | None, picture: Picture | None) -> float:
        """Milliseconds from the words to the first token. ahead_s: how long before the words' end the picture was
        shown."""
        self._count += 1
        talk = f"talk {self._count}"
        greeted = Prompt("You are Ada.", (), (Line("user", "hello"),))
        async for _ in self._llm.reply(talk, greeted, ReplyOptions("r0", 4)):
            pass
        before = (Line("user", "hello"), Line("assistant", "", reply_id="r0"))
        placed = () if picture is None else (PlacedPicture(0, picture),)
        hearing = None
        if ahead_s is not None:
            looked = Prompt("You are Ada.", (), (*before, Line("user", "", pictures=placed)))
            hearing = asyncio.create_task(self._llm.fold_heard(talk, looked))
        await asyncio.sleep(AHEAD_S)
        asked = Prompt("You are Ada.", (), (*before, Line("user", "what do you see here", pictures=placed)))
        began, found = time.perf_counter(), 0.0
        async for piece in self._llm.reply(talk, asked, ReplyOptions("r1", 2)):
            if isinstance(piece, TextPiece) and not found:
                found = (time.perf_counter() - began) * 1e3
        if hearing is not None:
            await hearing
        await self._llm.forget_talk(talk)
        return found or (time.perf_counter() - began) * 1e3


async def turns(llm: LocalLLM, thread: EngineThread, rounds: int) -> dict[str, dict[str, Any]]:
    """The three ways in turns, each picture shown once."""
    thread.start()
    talks, found = TurnTimer(llm), {way: [] for way in ("without", "ahead", "with_the_words")}
    try:
        for number in range(rounds + 1):
            for way, times in found.items():
                pixels = np.random.default_rng([number, len(way)]).integers(0, 256, (256, 512, 3), np.uint8)
                picture = None if way == "without" else Picture.of(pixels)
                ms = await talks.first_token(AHEAD_S if way == "ahead" else None, picture)
                if number:
                    times.append(ms)
    finally:
        thread.stop()
        await asyncio.to_thread(thread.join)
    plain = median(found["without"])
    return {way: {"ms": median(times), "times": times, "ratio": median(times) / plain} for way, times in found.items()}


def open_llm(folder: Path, threads: int, dtype: str, kernels: str) -> tuple[LocalLLM, EngineThread]:
    ctx = open_context("cpu", threads, kernels, load_config().compiled)
    engine = HybridLLM.load(folder, ctx, dtype, max_positions=2048)
    registry = Registry.standard(ctx, Budgets(host_bytes=1 << 28, disk_bytes=0), time.time, None)
    thread = EngineThread()
    deployment = Deployment(ctx, thread, registry, Journals(None))
    return LocalLLM(deployment, engine, language(), "bench", Sampling.greedy()), thread


def language() -> Language:
    """The shipped model's language; its format has no marks for pictures, so they get none."""
    found = load_language(TINY)
    return replace(found, layout=replace(found.layout, marks=("", "")), stops=frozenset())


def seeing_assistant(folder: Path, place: Path) -> Path:
    """The shipped model's shape, saying one sentence, with a tower and picture marks in its chat format."""
    config = LLMConfig.read(TINY)
    with_tower(parrot(config, place, REPLY), folder, PUBLISHED, config.hidden_size)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).symlink_to(TINY / name)
    template = (TINY / "chat_template.jinja").read_text("utf-8")
    assert template.count(SAID) == 1
    (folder / "chat_template.jinja").write_text(template.replace(SAID, SAID_AND_SHOWN), "utf-8")
    return folder


class ShowingCaller(Caller):
    """A caller that can show a picture `AHEAD_S` before the last audible sample."""

    async def ask(self, question: Question, picture: Picture | None) -> MeasuredTurn:
        async with asyncio.TaskGroup() as group:
            if picture is not None:
                group.create_task(self._show(question.end / REPLY_RATE - AHEAD_S, picture))
            turn = group.create_task(self.turn(question, interrupt=False))
        return turn.result()

    async def _show(self, after_s: float, picture: Picture) -> None:
        await asyncio.sleep(max(0.0, after_s))
        part = PicturePart(picture, frame=False)
        await self._session.send(CreateItem(Message(random_ids("item"), "user", (part,))))


async def spoken(app: App, question: Question, picture: Picture | None) -> MeasuredTurn:
    """One turn of a separate talk."""
    session = app.talks.open(Settings(turn_detection=SemanticVad()))
    caller = ShowingCaller(session)
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        group.create_task(caller.read())
        turn = await caller.ask(question, picture)
        session.close()
    app.talks.forget(session.talk)
    return turn


async def first_sounds(folder: Path, threads: int, rounds: int) -> dict[str, Any]:
    """The two ways in turns."""
    flags = {"profile": "tiny", "llm": str(folder), "threads": str(threads), "max_positions": "2048"}
    found: dict[str, list[MeasuredTurn]] = {"without": [], "ahead": []}
    with tempfile.TemporaryDirectory() as home:
        async with open_talks(load_config(flags, {"ASSISTANT_HOME": home})) as app:
            asked = await questions(app.models.tts, ASKED)
            for number in range(rounds + 1):
                for way, turns in found.items():
                    pixels = np.random.default_rng(number).integers(0, 256, (256, 512, 3), np.uint8)
                    picture = None if way == "without" else Picture.of(pixels)
                    turn = await spoken(app, asked[number % len(asked)], picture)
                    if number:
                        turns.append(turn)
    return {way: told(turns) for way, turns in found.items()} | {"ratio": ratio(found)}


def ratio(found: dict[str, list[MeasuredTurn]]) -> float | None:
    """Ratio of the medians, over rounds in which both ways were answered."""
    both = [
        (one.figures["voice_to_voice"], other.figures["voice_to_voice"])
        for one, other in zip(found["ahead"], found["without"], strict=True)
        if {"voice_to_voice"} <= one.figures.keys() & other.figures.keys()
    ]
    return median(one for one, _ in both) / median(other for _, other in both) if both else None


def told(turns: list[MeasuredTurn]) -> dict[str, Any]:
    """The front's measurements of each turn and the session's own figures; unanswered ones are counted."""
    times = [turn.figures["voice_to_voice"] for turn in turns if "voice_to_voice" in turn.figures]
    rows = [
        {"question": turn.question, "heard": turn.heard, "said": turn.said, **turn.figures,
         "session": {} if turn.timeline is None else dict(turn.timeline.figures)}
        for turn in turns
    ]  # fmt: skip
    return {"ms": median(times) if times else None, "n": len(times), "turns": rows}


def of_towers(args: argparse.Namespace, dtype: str, folder: Path) -> dict[str, Any]:
    """Looks and first tokens, by tower."""
    text, towers = TINY, {"published": PUBLISHED, "small": SMALL}
    if args.text == "0.8b":
        text, towers = folder / "text", {"published": PUBLISHED}
        parrot(config_of("0.8b"), text, REPLY)
    hidden = json.loads((text / "config.json").read_text())["hidden_size"]
    result: dict[str, Any] = {}
    for name, tower in towers.items():
        llm, thread = open_llm(with_tower(text, folder / name, tower, hidden), args.threads, dtype, args.kernels)
        looks = look_times(llm.engine, args.rounds)
        result[name] = {"looks": looks, "first_token": asyncio.run(turns(llm, thread, args.rounds))}
        print(f"tower {name}, {dtype}, {args.threads} threads")
        for row in looks:
            print("  " + ", ".join(f"{key} {value:.4g}" for key, value in row.items()))
        for way, row in result[name]["first_token"].items():
            print(f"  first token, picture {way}: {row['ms']:.0f} ms, {row['ratio']:.2f} x without")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", choices=("tiny", "0.8b"), default="tiny")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default=None)
    parser.add_argument("--kernels", choices=("auto", "torch"), default="auto")
    parser.add_argument("--only", choices=("tower", "sound"))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    dtype = args.dtype or ("float32" if args.text == "tiny" else "bfloat16")
    result: dict[str, Any] = {"arguments": {**vars(args), "out": None, "dtype": dtype}, "load": os.getloadavg()}
    with tempfile.TemporaryDirectory() as place:
        if args.only != "sound":
            result |= of_towers(args, dtype, Path(place))
        if args.only != "tower" and args.text == "tiny":
            folder = seeing_assistant(Path(place) / "assistant", Path(place) / "parrot")
            sounds = result["first_sound"] = asyncio.run(first_sounds(folder, args.threads, args.rounds))
            for way in ("without", "ahead"):
                print(f"first sound, picture {way}: {sounds[way]['ms']:.0f} ms, n {sounds[way]['n']}")
            print(f"  {sounds['ratio']:.2f} x without")
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
