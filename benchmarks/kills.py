"""Kills the process of a talk at random moments, and checks that each resumed talk equals one that was never killed.

    python -m benchmarks.kills --kills 300        writes benchmarks/results/kills.json, some 20 minutes on two cores
    python -m benchmarks.kills --evictions 100    the same talks, evicted from memory and disk after every step

A script of steps (asked aloud or typed, answered aloud or in text, with tools, cut in mid-sentence and afterwards,
taken back) is played once undisturbed. After each step its words, the data of the tools and every bit of both models'
states are the reference. Then child after child resumes the same talk from its folder, is compared with the reference
of the last step that was reported as over to its front (any part of the next one is taken back first), goes on, and is
killed (-9). Shipped tiny models; spoken questions use the shipped voice.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import hashlib
import json
import os
import random
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import llm_engine
import tts_engine
from assistant.app.household import STORE
from assistant.app.start import _own_tools
from assistant.asr.pocketsphinx import open_asr
from assistant.base.clock import LoopClock
from assistant.device.deployment import Deployment
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread
from assistant.events import (
    AppendAudio,
    AudioDelta,
    CommitAudio,
    CreateItem,
    CreateResponse,
    Error,
    Message,
    ReportHeard,
    ResponseDone,
    ResponseParams,
    RetrieveItem,
    Settings,
    TextPart,
    TruncateItem,
    Undo,
)
from assistant.llm.local import LocalLLM
from assistant.llm.small import SmallMind
from assistant.personas import load_personas
from assistant.talk import Engines, Services
from assistant.talk.keeping import entry_row
from assistant.talk.talks import Talks
from assistant.tools.builtin import TRAINED_TOOLS
from assistant.tools.home import HomeRows
from assistant.tools.rows import to_cells
from assistant.tts.local import LocalTTS
from assistant.tts.voices import load_voices
from capsules import Capsule, ExecContext
from capsules.journal import Journals
from capsules.registry import Budgets, Registry
from llm_engine import HybridLLM, Sampling
from tts_engine.engine import HiggsTTS

LLM, TTS = Path(llm_engine.__file__).parent / "tiny", Path(tts_engine.__file__).parent / "tiny"
RESULTS = Path(__file__).parent / "results"
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
DISK = 1 << 28
SAID = ("type", "role", "content", "name", "arguments", "output", "status", "hidden", "nod")


@dataclass(frozen=True)
class Step:
    """`text` is asked (`aloud`: as sound), answered in `modality`; after `cut_ms` of its sound the reply is cut: while
    it is being made, or when it is over. Without a text: as many turns are taken back as `undo` says, or the last reply
    is cut."""

    text: str = ""
    aloud: bool = False
    modality: str = "audio"
    cut_ms: int = 0
    undo: int = 0


SCRIPTS = (
    (Step("count to five"), Step("set a timer for five minutes", cut_ms=500), Step("add milk to my shopping list"),
     Step(undo=1), Step("what time is it", aloud=True), Step(cut_ms=400), Step("tell me a joke")),
    (Step("what is two plus two", modality="text"), Step("add eggs to my shopping list", modality="text"),
     Step("set a timer for ten minutes", modality="text"), Step(undo=2), Step("hello", modality="text")),
    (Step("what time is it", aloud=True), Step("tell me a story", cut_ms=1500), Step("set a timer for one minute"),
     Step(cut_ms=600), Step("count to ten", cut_ms=900), Step(undo=2), Step("hello")),
)  # fmt: skip


@dataclass
class Machine:
    """Loaded once and copied by every fork."""

    ctx: ExecContext
    llm: HybridLLM
    tts: HiggsTTS
    ears: Any
    sounds: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Machine:
        torch.set_num_threads(1)
        ctx = ExecContext("cpu")
        llm, tts = HybridLLM.load(LLM, ctx, max_positions=1024), HiggsTTS.load(TTS, ctx, max_positions=1024)
        made = cls(ctx, llm, tts, open_asr())
        for text in {step.text for script in SCRIPTS for step in script if step.aloud}:
            made.sounds[text] = np.concatenate([pcm.numpy() for pcm in made.tts.speak(text)])
        return made


@dataclass
class Playing:
    """The assistant of one process over a folder, with its one talk."""

    machine: Machine
    folder: Path
    disk_bytes: int = DISK
    host_bytes: int = 1 << 28

    async def run(self, talk: str | None, play: Callable[[Playing], Any]) -> Any:
        machine, personas = self.machine, load_personas()
        machine.llm.reset()
        thread = EngineThread()
        self.thread = thread
        with ThreadPoolExecutor(2) as pool:
            budgets = Budgets(host_bytes=self.host_bytes, disk_bytes=self.disk_bytes)
            self.registry = Registry.standard(machine.ctx, budgets, time.time, self.folder / "capsules", pool)
            voices = load_voices(machine.tts, TTS, self.registry)
            deployment = Deployment(machine.ctx, thread, self.registry, Journals(self.folder / "talks", pool))
            self.llm = LocalLLM(deployment, machine.llm, SmallMind(LLM).language(), "tiny", Sampling.greedy())
            self.tts = LocalTTS(deployment, machine.tts, voices, "tiny")
            services = Services(
                Engines(self.llm, self.tts, machine.ears), LoopClock(), personas, asyncio.to_thread,
                tools=lambda session: _own_tools(personas, session, self.home, names=TRAINED_TOOLS),
            )  # fmt: skip
            settings = Settings(persona="ada", turn_detection=None, paced=False)
            talks = Talks(services, settings=settings, journals=deployment.journals)
            self.home = HomeRows(self.folder / STORE, lambda: NOON)
            thread.start()
            self.session = session = talks.open(resume=talk)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(session.run())
                    found = await play(self)
                    session.close()
                return found
            finally:
                session.close()
                thread.stop()
                await asyncio.to_thread(thread.join)
                self.home.close()
                self.registry.flush()

    # ------------------------------------------------------------------------------------- steps

    async def step(self, step: Step) -> None:
        """Returns when the front received the report that the step is over."""
        session = self.session
        if step.undo:
            await session.send(Undo(step.undo))
        elif not step.text:
            await self._cut(self._last_spoken(), step.cut_ms)
        else:
            await self._ask(step)
            while True:
                event = await session.events.receive()
                if isinstance(event, AudioDelta):
                    played = (event.start_sample + event.pcm.size) / 24
                    await session.send(ReportHeard(event.item_id, min(played, step.cut_ms or played)))
                    if step.cut_ms and played > step.cut_ms + 400:
                        await self._cut(event.item_id, step.cut_ms)
                        break
                if isinstance(event, ResponseDone):
                    if step.cut_ms:
                        await self._cut(self._last_spoken(), step.cut_ms)
                    break
        await self._settled()

    async def _ask(self, step: Step) -> None:
        session = self.session
        if step.aloud:
            sound = np.concatenate([self.machine.sounds[step.text], np.zeros(12_000, np.float32)])
            await session.send(AppendAudio(sound, 24_000))
            await session.send(CommitAudio())
        else:
            item_id = f"typed_{random.getrandbits(60)}"
            await session.send(CreateItem(Message(item_id, "user", (TextPart(step.text),))))
        modality: Any = step.modality
        await session.send(CreateResponse(ResponseParams(modality=modality)))

    async def _cut(self, item_id: str, ms: int) -> None:
        await self.session.send(TruncateItem(item_id, 0, ms))

    def _last_spoken(self) -> str:
        return [entry.item.id for entry in self.session.conversation if entry.pieces][-1]

    async def _settled(self) -> None:
        """Wait until everything sent is done: the answer to an impossible question follows it."""
        await self.session.send(RetrieveItem("none"))
        while not (isinstance(event := await self.session.events.receive(), Error) and "retrieve" in event.code):
            pass

    # ------------------------------------------------------------------------------------- facts

    def words(self) -> list[Any]:
        """All items, including hidden ones, and how much of them was heard, without ids. A reply that was killed during
        its last sound has all its words, but it is not the one that was heard out, and neither is the voice's state."""
        found = []
        for entry in self.session.conversation:
            row: Any = entry_row(entry)
            heard = [piece[1:-1] for piece in row.get("pieces", ())]  # marks after a cut may be present or not
            found.append([*(row[name] for name in SAID if name in row), heard])
        return found

    def kept(self) -> dict[str, Any]:
        """Everything stored, without the numbers of the rows."""
        return {slot: [to_cells(row)[1:] for row in self.home.rows(slot)] for slot in self.home.slots}

    async def state(self) -> dict[str, str]:
        """Digests of both models' states, when all work is done. A talk in which nothing was said has none: it does not
        matter whether the persona's words are folded already."""
        if not len(self.session.conversation):
            return {}
        context, talk = self.session._context, self.session.talk
        prompt = context.view.prompt(context.settings)
        await self.session._state_sync.wait()
        await self.llm.sync(talk, prompt)
        await self.tts.sync(talk, self.session.conversation.uttered())
        await self.llm.prepare(talk, prompt)
        await self.tts.prepare(talk)

        def llm() -> str:
            if self.llm._lease.find(talk) is None:
                return ""
            self.llm._lease.own(talk)
            return digest(self.machine.llm.snapshot())

        def tts() -> str:
            found = self.tts._lease.find(talk)
            if found is None or not found.said:
                return ""
            self.tts._lease.own(talk)
            return digest(self.machine.tts.snapshot())

        return {
            "llm": await self.thread.call(EngineKind.LLM, llm, talk=talk),
            "tts": await self.thread.call(EngineKind.TTS, tts, talk=talk),
        }

    async def facts(self) -> dict[str, Any]:
        words, kept = self.words(), self.kept()
        return json.loads(json.dumps({"words": words, "kept": kept, "state": await self.state()}))


def digest(capsule: Capsule) -> str:
    """A digest of every byte of a state."""
    found = hashlib.blake2b(digest_size=12)
    for name, tensor in sorted(capsule.tensors.items()):
        found.update(name.encode() + tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


async def reference(playing: Playing, script: tuple[Step, ...]) -> list[Any]:
    """The reference before the first step and after each."""
    found = [await playing.facts()]
    for step in script:
        await playing.step(step)
        found.append(await playing.facts())
    return found


# ------------------------------------------------------------------------------------------- children


async def compared(playing: Playing, wanted: list[Any], told: int) -> tuple[int, dict[str, Any]]:
    """The step that the resumed talk has reached (`told`, or the one after), and the differences."""
    await playing._settled()  # data stored by tools is taken over when the session runs
    words = playing.words()
    begun = None
    for at in (told + 1, told):
        if at < len(wanted) and json.loads(json.dumps(words)) == wanted[at]["words"]:
            break
    else:
        begun = len(words) - len(wanted[told]["words"])
        await playing.session.send(Undo(1))
        await playing._settled()
    found = await playing.facts()
    differs = {name: [found[name], wanted[at][name]] for name in found if found[name] != wanted[at][name]}
    return at, {"at": at, "told": told, "begun": begun, "differs": differs}


def child(machine: Machine, folder: Path, job: dict[str, Any], wanted: list[Any], out: int) -> None:
    """Resume, compare, report it, and go on with the script until killed, reporting every finished step."""

    def tell(**facts: Any) -> None:
        os.write(out, json.dumps(facts).encode() + b"\n")

    async def play(playing: Playing) -> None:
        at = 0
        if job["talk"] is not None:
            at, found = await compared(playing, wanted, job["told"])
            tell(resumed=found)
        tell(talk=playing.session.talk, go=at)
        for place, step in enumerate(SCRIPTS[job["script"]][at:], at + 1):
            await playing.step(step)
            tell(told=place)
        tell(over=True)

    asyncio.run(Playing(machine, folder).run(job["talk"], play))


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """A process that does this work; its id, and a descriptor that reads its output."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        code = 1
        with contextlib.suppress(BaseException):
            try:
                work(write)
                code = 0
            except BaseException:
                import traceback

                os.write(write, json.dumps({"failed": traceback.format_exc()[-3000:]}).encode() + b"\n")
        os._exit(code)
    os.close(write)
    return pid, read


def one_kill(
    machine: Machine, folder: Path, job: dict[str, Any], wanted: list[Any], steps: int, after_s: float
) -> list[Any]:
    """Run a child until `after_s` seconds after it reported that it goes on, and then until it has finished as many
    steps; returns what it reported."""
    pid, read = forked(lambda out: child(machine, folder, job, wanted, out))
    data, deadline = b"", time.monotonic() + 300
    while (left := deadline - time.monotonic()) > 0:
        if select.select([read], [], [], left)[0]:
            part = os.read(read, 1 << 16)
            if not part:
                break
            data += part
            if b'"go"' in data and data.count(b'"told": ') - data.count(b'"at": ') >= steps:
                deadline = min(deadline, time.monotonic() + after_s)
    os.kill(pid, signal.SIGKILL)
    while part := os.read(read, 1 << 16):  # what it reported before it died
        data += part
    os.close(read)
    os.waitpid(pid, 0)
    return [json.loads(line) for line in data.splitlines() if line.endswith(b"}")]


def kills(machine: Machine, count: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    home = Path(tempfile.mkdtemp(prefix="kills"))
    wanted = [told_by(lambda p, s=s: reference(p, s), machine, home / f"ref{n}") for n, s in enumerate(SCRIPTS)]
    rows: list[dict[str, Any]] = []
    script = folder = None
    job: dict[str, Any] = {}
    while sum(not row["over"] for row in rows) < count:
        if folder is None:
            script, folder = rng.randrange(len(SCRIPTS)), home / f"talk{len(rows)}"
            job = {"talk": None, "told": 0, "script": script}
        assert script is not None
        # Half of the kills hit anywhere, half right after a step: cuts, undos and writing happen there.
        steps, after_s = rng.choice(((0, rng.uniform(0, 2)), (rng.randrange(4), rng.uniform(0, 0.06))))
        told = one_kill(machine, folder, job, wanted[script], steps, after_s)
        row: dict[str, Any] = {"script": script, "steps": steps, "after_s": round(after_s, 3)}
        for fact in told:
            row |= {name: fact[name] for name in ("resumed", "failed") if name in fact}
            job["talk"] = fact.get("talk", job["talk"])
            job["told"] = fact.get("told", fact.get("go", job["told"]))
        over = any("over" in fact for fact in told)
        row |= {"told": job["told"], "over": over}
        rows.append(row)
        # A talk in which nothing was said yet is not stored, after a kill as after an orderly end.
        row["empty"] = "UnknownTalk" in row.get("failed", "") and not job["told"]
        bad = ("failed" in row and not row["empty"]) or row.get("resumed", {}).get("differs")
        if bad:
            print(json.dumps(row)[:1500], flush=True)
        if "failed" in row:
            row["failed"] = row["failed"].strip().splitlines()[-1]  # the trace is for people watching
        if len(rows) % 10 == 0:
            print(len(rows), "kills", flush=True)
        if over or bad or row["empty"] or job["talk"] is None:
            if not bad:
                shutil.rmtree(folder, ignore_errors=True)
            folder = None
    compared_rows = [row["resumed"] for row in rows if "resumed" in row]
    summary = {
        "processes": len(rows), "kills": sum(not row["over"] for row in rows), "resumed": len(compared_rows),
        "empty": sum(row["empty"] for row in rows),
        "failed": sum("failed" in row and not row["empty"] for row in rows),
        "equal": sum(not row["differs"] for row in compared_rows),
        "words_differ": sum("words" in row["differs"] for row in compared_rows),
        "kept_differ": sum("kept" in row["differs"] for row in compared_rows),
        "state_differ": sum("state" in row["differs"] for row in compared_rows),
        "killed_inside_a_turn": sum(row["begun"] is not None for row in compared_rows),
    }  # fmt: skip
    if not summary["failed"] and summary["equal"] == summary["resumed"]:
        shutil.rmtree(home, ignore_errors=True)
    return {"summary": summary, "rows": rows}


def told_by(play: Callable[[Playing], Any], machine: Machine, folder: Path, **budgets: int) -> Any:
    """The result of a talk of its own, in a process of its own."""

    def work(out: int) -> None:
        found = asyncio.run(Playing(machine, folder, **budgets).run(None, play))
        with open(out, "wb", closefd=False) as file:
            file.write(json.dumps(found).encode() + b"\n")

    pid, read = forked(work)
    data = b""
    while part := os.read(read, 1 << 16):
        data += part
    os.close(read)
    os.waitpid(pid, 0)
    found = json.loads(data)
    if isinstance(found, dict) and "failed" in found:
        raise SystemExit(found["failed"])
    return found


# ------------------------------------------------------------------------------------------ evictions


async def evicted(playing: Playing, script: tuple[Step, ...]) -> list[Any]:
    """After each step every capsule of the talk is deleted, also on disk, and the engines hold somebody else's
    state."""
    found = []
    for step in script:
        await playing.step(step)
        await playing._settled()
        await playing.session._state_sync.wait()

        def lose() -> None:
            playing.llm._lease.release()
            playing.tts._lease.release()
            for one in playing.registry.listing():
                if one.name.startswith("talk/"):
                    playing.registry.remove(one.key)
            playing.machine.llm.reset()
            playing.machine.tts.open()

        await playing.thread.call(EngineKind.LLM, lose)
        found.append((await playing.facts())["state"])
    return found


def evictions(machine: Machine, count: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    home = Path(tempfile.mkdtemp(prefix="evictions"))
    rows: list[dict[str, Any]] = []
    texts = ("count to five", "hello", "what is two plus two", "set a timer for five minutes", "what time is it")
    while len(rows) < count:
        script: list[Step] = []
        for place in range(10):
            if place and rng.random() < 0.2:
                script.append(Step(undo=1))
            else:
                cut = rng.choice((0, 0, 0, 0, 0, 300, 900))
                modality = "audio" if cut else rng.choice(("audio", "text", "text", "text"))
                script.append(Step(rng.choice(texts), modality=modality, cut_ms=cut))
        plan = tuple(script)
        here = told_by(lambda p, s=plan: reference(p, s), machine, home / f"{len(rows)}r")
        there = told_by(lambda p, s=plan: evicted(p, s), machine, home / f"{len(rows)}e")
        for step, one, other in zip(plan, here[1:], there, strict=True):
            if other:
                equal = {name: one["state"][name] == other[name] for name in ("llm", "tts")}
                rows.append({"step": vars(step), "voice": bool(other["tts"]), **equal})
        print(len(rows), "evictions,", sum(row["llm"] and row["tts"] for row in rows), "equal", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    voices = sum(row["voice"] for row in rows)
    equal = {f"{name}_equal": sum(row[name] for row in rows) for name in ("llm", "tts")}
    summary = {"evictions": len(rows), "with_a_voice": voices, **equal}
    return {"summary": summary, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--evictions", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "kills.json")
    args = parser.parse_args()
    machine = Machine.load()
    found = json.loads(args.out.read_text()) if args.out.is_file() else {}
    if args.kills:
        found["kills"] = kills(machine, args.kills, args.seed)
    if args.evictions:
        found["evictions"] = evictions(machine, args.evictions, args.seed)
    args.out.write_text(json.dumps(found) + "\n")
    print(json.dumps({name: part["summary"] for name, part in found.items()}, indent=1))


if __name__ == "__main__":
    main()
