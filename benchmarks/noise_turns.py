"""Does noise take a turn? `python -m benchmarks.noise_turns --people DIR --voices DIR [--minutes N]`.

The product's hearing stage, with the real detector and ears, in a street, a kitchen, and before six other talkers, who
are recordings of people (`recipes.asr.people`). In one run the noise is alone from the first sample on; in another a
user asks something every twenty seconds, 10 dB over it. Virtual time: a run takes about a fifth of the simulated time.

    onsets    reported while no user spoke, per minute
    turns     how many of these became a turn with words: the assistant would answer
    heard     requests over which a turn with words began
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import numpy as np
import soundfile

from assistant.asr import open_asr
from assistant.base.sound import Pcm
from assistant.contracts import ASR
from assistant.events import AppendAudio
from assistant.talk.messages import UserBegan, UserWords
from recipes.asr.ears import MUTED_S, RATE, StandingLoop, Unhurried, at_once, settled, stage
from recipes.asr.noise import SNR_DB, Noise, babble, kitchen, speech_power, street
from recipes.asr.people import read_list
from recipes.asr.voices import spoken

PUSH = RATE // 50
LEVEL = 0.1
EVERY_S = 20
USER = "heart"
FLOOR = 3e-4
FIRST_SEED = 40
"""No scene from this seed on was used before: assistant/talk/own_level.py was fitted on the seeds below 12."""


async def turns(asr: ASR, sound: Pcm) -> list[tuple[float, str]]:
    """The beginning of each turn, s, and its words."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StandingLoop)
    context, inlet, hearing = stage(asr, at_once)
    began: dict[str, float] = {}
    words: dict[str, str] = {}

    async def note() -> None:
        async for message in context.inbox:
            if isinstance(message, UserBegan):
                began[message.item_id] = loop.now
            elif isinstance(message, UserWords):
                words[message.item_id] = message.text

    async with asyncio.TaskGroup() as group:
        group.create_task(note())
        running = group.create_task(hearing.run())
        for start in range(0, sound.size - PUSH + 1, PUSH):
            loop.now = (start + PUSH) / RATE
            await inlet.send(AppendAudio(sound[start : start + PUSH], RATE))
            await settled()
        loop.now += MUTED_S
        await settled()
        inlet.close()
        await running
        context.inbox.close()
    return [(moment, words.get(item, "")) for item, moment in began.items()]


def scene(noise: Noise, minutes: float, requests: list[Pcm], seed: int) -> tuple[Pcm, list[tuple[float, float]]]:
    """The noise at its level, and over it every request in its turn; with their times, s."""
    rng = np.random.default_rng(seed)
    sound = noise(int(minutes * 60 * RATE), rng)
    sound *= LEVEL * 10 ** (-SNR_DB / 20) / np.sqrt(np.mean(sound**2))
    sound += FLOOR * rng.standard_normal(sound.size)
    spoken_at = []
    for number, begin in enumerate(range(EVERY_S // 2, int(minutes * 60) - EVERY_S // 2, EVERY_S)):
        if not requests:
            break
        words = requests[number % len(requests)]
        at = begin * RATE
        sound[at : at + words.size] += words * LEVEL / np.sqrt(speech_power(words))
        spoken_at.append((begin, begin + words.size / RATE))
    return sound.astype(np.float32), spoken_at


def figures(found: list[tuple[float, str]], users: list[tuple[float, float]], minutes: float) -> dict[str, float]:
    def over(moment: float) -> int | None:
        return next((n for n, (begin, end) in enumerate(users) if begin <= moment <= end + 0.5), None)

    own = [(moment, words) for moment, words in found if over(moment) is None]
    heard = {over(moment) for moment, words in found if words} - {None}
    return {"minutes": minutes, "onsets": len(own), "turns": sum(bool(words) for _, words in own),
            "requests": len(users), "heard": len(heard)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=Path, required=True)
    parser.add_argument("--voices", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    files = [a.people / f"{row.name}.wav" for row in read_list()]
    talkers = [soundfile.read(file, dtype="float32")[0] for file in files if file.exists()]
    asked = [sound for _, _, sound in spoken(a.voices, USER, "requests")]
    asr, table = Unhurried(open_asr("moonshine")), {}
    places: dict[str, Noise] = {"street": street, "kitchen": kitchen, "babble": babble(talkers)}
    for seed, (place, noise) in enumerate(places.items(), FIRST_SEED):
        for users in ("alone", "user"):
            sound, spoken_at = scene(noise, a.minutes, asked if users == "user" else [], seed)
            with asyncio.Runner(loop_factory=StandingLoop) as runner:
                found = runner.run(turns(asr, sound))
            table[f"{place}, {users}"] = figures(found, spoken_at, a.minutes)
            print(place, users, table[f"{place}, {users}"], [words for _, words in found][:6], flush=True)
    if a.json:
        a.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
