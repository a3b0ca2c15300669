"""Does the assistant hear itself? Talks over a loudspeaker: `python -m benchmarks.echo --voices DIR [--part test]`.

The product's hearing stage, with the real detector, gets the sound of a microphone in a room: replies that come back
through an impulse response, delayed as by a client's buffers (slightly different for each reply), some distorted as by
a small loudspeaker, and the user over them. Virtual time, so load on the machine only changes how long it takes (about
5 minutes a part). Voices: the output of `recipes.asr.voices`. The development set shares no room, no voice and no delay
with the others; constants were fitted on it. With `--headphones` the microphone hears only the user: then every report
must be the same, at the same moments, as if the ears did not know what is played.

    own       onsets reported while a reply sounded and nobody else spoke
    noticed   share of interruptions reported while they lasted, and how long after their first sound, ms
    first     the same for the first reply of a session, when the echo path is not known yet
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import samplerate

from assistant.asr import open_asr
from assistant.base.sound import REPLY_RATE, Pcm
from assistant.contracts import ASR
from assistant.events import AppendAudio, AudioDelta
from assistant.talk.messages import UserBegan
from recipes.asr.ears import MUTED_S, RATE, StandingLoop, at_once, settled, stage
from recipes.asr.noise import speech_power
from recipes.asr.rooms import Room, response
from recipes.asr.voices import spoken

SILENT_DB = -200.0
REPLIES = 5
"""Number of replies in one session."""
PUSH = RATE // 50
LEVEL = 0.1
FLOOR = 3e-4
JITTER_MS = 30.0
GAP_S = 2.0


@dataclass(frozen=True, slots=True)
class LoudspeakerScene:
    """One session. `delay_ms`: of client and devices, in addition to the room's. `db`: the echo relative to the user.
    `drive`: how far the loudspeaker is driven into saturation; 0: it is linear."""

    room: Room
    delay_ms: float
    db: float
    drive: float = 0.0


ROOMS = {
    "dev": (
        Room((4.2, 3.4, 2.6), (1.0, 1.2, 1.0), (1.6, 1.5, 1.1), 0.3),
        Room((5.5, 4.0, 2.7), (2.0, 1.0, 0.8), (2.9, 1.9, 1.0), 0.5),
    ),
    "test": (
        Room((3.6, 2.9, 2.5), (0.9, 0.8, 0.8), (1.3, 1.4, 1.2), 0.25),
        Room((6.4, 4.7, 2.8), (3.1, 1.4, 0.9), (2.2, 2.3, 1.1), 0.45),
    ),
    "other": (
        Room((3.1, 2.4, 2.4), (0.8, 1.7, 0.9), (1.4, 1.1, 1.2), 0.22),
        Room((6.9, 4.9, 2.9), (3.0, 3.1, 0.8), (4.6, 2.2, 1.1), 0.55),
    ),
}
DELAYS_MS = {"dev": (80.0, 150.0, 220.0, 300.0, 380.0), "test": (60.0, 120.0, 190.0, 270.0, 400.0)}
DELAYS_MS["other"] = (65.0, 110.0, 180.0, 290.0, 360.0)
VOICES = {"dev": ("heart", "joe"), "test": ("alpha", "kumo"), "other": ("kumo", "alpha")}
"""Voices of the replies, voices of the interruptions."""


def scenes(part: Literal["dev", "test", "other"], db: float | None = None) -> list[LoudspeakerScene]:
    """Ten sessions, so fifty replies: two rooms, five delays, alternating -6 and -12 dB or always `db`, every fifth
    distorted."""
    levels = (-6.0, -12.0) if db is None else (db, db)
    pairs = [(room, delay) for delay in DELAYS_MS[part] for room in ROOMS[part]]
    return [
        LoudspeakerScene(room, delay, levels[0] if (n + n // 2) % 2 else levels[1], 4.0 if n % 5 == 4 else 0.0)
        for n, (room, delay) in enumerate(pairs)
    ]


@dataclass(frozen=True, slots=True)
class LoudspeakerTalk:
    """The microphone's sound, what is played when, and the times at which the user speaks; samples at RATE."""

    heard: Pcm
    replies: tuple[tuple[int, Pcm], ...]
    user: tuple[tuple[int, int], ...]


def session(scene: LoudspeakerScene, number: int, cache: Path, part: str, interrupted: bool) -> LoudspeakerTalk:
    rng = np.random.default_rng(number)
    talks, interrupts = VOICES[part]
    way = response(scene.room, rng)
    said = [sound for _, _, sound in spoken(cache, talks, "open")]
    asked = [sound for _, _, sound in spoken(cache, interrupts, "requests")]
    heard, replies, user, at = [], [], [], 0
    for n in range(REPLIES):
        reply = np.concatenate([said[(number * 7 + n * 2 + k) % len(said)] for k in range(2)]).astype(np.float64)
        reply *= LEVEL / np.sqrt(speech_power(reply.astype(np.float32)))
        loud = np.tanh(reply * scene.drive) / scene.drive if scene.drive else reply
        delay = int((scene.delay_ms + rng.uniform(-JITTER_MS, JITTER_MS)) * RATE / 1000)
        echo = np.pad(np.convolve(loud, way), (delay, 0))
        whole = np.zeros(reply.size + int(GAP_S * RATE))
        echo = echo[: whole.size]
        whole[: echo.size] = echo * LEVEL * 10 ** (scene.db / 20) / np.sqrt(speech_power(echo.astype(np.float32)))
        whole += FLOOR * rng.standard_normal(whole.size)
        if interrupted:
            words = asked[(number * 5 + n) % len(asked)]
            words = words * LEVEL / np.sqrt(speech_power(words))
            begin = int(rng.uniform(1.0, max(1.2, reply.size / RATE - 1.5)) * RATE)
            words = words[: whole.size - begin]
            whole[begin : begin + words.size] += words
            user.append((at + begin, at + begin + words.size))
        replies.append((at, samplerate.resample(reply.astype(np.float32), REPLY_RATE / RATE, "sinc_best")))
        heard.append(whole)
        at += whole.size
    return LoudspeakerTalk(np.concatenate(heard).astype(np.float32), tuple(replies), tuple(user))


async def onsets(asr: ASR, scene: LoudspeakerTalk, known: bool) -> list[tuple[float, float]]:
    """Moments at which the stage reported speech, and its stated start; seconds. `known`: it learns what is played."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StandingLoop)
    context, inlet, hearing = stage(asr, at_once)
    found: list[tuple[float, float]] = []
    waiting = list(scene.replies)

    async def note() -> None:
        async for message in context.inbox:
            if isinstance(message, UserBegan):
                found.append((loop.now, message.start_ms / 1000))

    async with asyncio.TaskGroup() as group:
        group.create_task(note())
        running = group.create_task(hearing.run())
        for start in range(0, scene.heard.size - PUSH + 1, PUSH):
            if known and waiting and waiting[0][0] <= start:
                told = AudioDelta("reply", "item", 0, 0, 0, waiting.pop(0)[1])
                context.playing.told(told, context.settings, loop.now)
            loop.now = (start + PUSH) / RATE
            await inlet.send(AppendAudio(scene.heard[start : start + PUSH], RATE))
            await settled()
        loop.now += MUTED_S
        await settled()
        inlet.close()
        await running
        context.inbox.close()
    return found


def listened(asr: ASR, scene: LoudspeakerTalk, known: bool) -> list[tuple[float, float]]:
    with asyncio.Runner(loop_factory=StandingLoop) as runner:
        return runner.run(onsets(asr, scene, known))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", type=Path, required=True, help="the folder of recipes.asr.voices")
    parser.add_argument("--part", choices=("dev", "test", "other"), default="test")
    parser.add_argument("--db", type=float, help="level of every echo relative to the user (default: -6 and -12)")
    parser.add_argument("--headphones", action="store_true", help="no echo: check that nothing changes")
    parser.add_argument("--unknown", action="store_true", help="hide from the ears what is played, for comparison")
    parser.add_argument("--only", type=int, help="run only the session of this number")
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    asr = open_asr("pocketsphinx")  # words do not matter here
    own, late, first, rows = 0, [], [], []
    for number, scene in enumerate(scenes(a.part, SILENT_DB if a.headphones else a.db)):
        if a.only not in (None, number):
            continue
        if a.headphones:
            talk = session(scene, number, a.voices, a.part, interrupted=True)
            late.append([listened(asr, talk, known) for known in (False, True)])
            print("the same" if late[-1][0] == late[-1][1] else late[-1], flush=True)
            continue
        alone = listened(asr, session(scene, number, a.voices, a.part, interrupted=False), not a.unknown)
        over = session(scene, number, a.voices, a.part, interrupted=True)
        told = [moment for moment, _ in listened(asr, over, not a.unknown)]
        waits = []
        for begin, end in over.user:
            hits = [moment - begin / RATE for moment in told if begin <= moment * RATE <= end + RATE // 5]
            waits.append(round(hits[0] * 1000) if hits else None)
        own += len(alone)
        late += waits
        first.append(waits[0])
        rows.append({"rt60_s": scene.room.rt60_s, "delay_ms": scene.delay_ms, "db": scene.db, "drive": scene.drive,
                     "own": len(alone), "noticed_ms": waits})  # fmt: skip
        print(rows[-1], flush=True)
    if a.headphones:
        print(f"{sum(one == other for one, other in late)} of {len(late)} sessions the same")
        return
    there = [ms for ms in late if ms is not None]
    table = {"part": a.part, "db": a.db, "known": not a.unknown, "replies": len(late), "own": own,
             "noticed": round(len(there) / len(late), 3), "noticed_first": sum(ms is not None for ms in first),
             "ms_median": int(np.median(there)) if there else None,
             "ms_p90": int(np.percentile(there, 90)) if there else None, "sessions": rows}  # fmt: skip
    print({key: value for key, value in table.items() if key != "sessions"})
    if a.json:
        held = json.loads(a.json.read_text()) if a.json.exists() else []
        a.json.write_text(json.dumps([*held, table], indent=1) + "\n")


if __name__ == "__main__":
    main()
