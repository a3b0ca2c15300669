"""A large voice model in a whole talk: each persona has a voice of its own, whoever takes over is heard in it, and two
starts of the assistant speak alike."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.base.sound import Pcm
from assistant.events import (
    AudioDelta,
    CreateItem,
    CreateResponse,
    Message,
    PersonaSwitched,
    ResponseDone,
    ResponseParams,
    SwitchPersona,
    TextPart,
)
from assistant.talk import Session
from assistant.talk.conversation import item_text
from tests.tts_engine.miniature import write_miniature
from tts_engine.voice_file import read_voice_file

pytestmark = pytest.mark.slow

ASKED = "what is two plus three"


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_miniature(tmp_path_factory.mktemp("voice") / "mini")


async def until(session: Session, kind: type) -> list[object]:
    events: list[object] = []
    while not (events and isinstance(events[-1], kind)):
        events.append(await session.events.receive())
    return events


@dataclass(frozen=True)
class Heard:
    voice: str | None
    words: str
    sound: Pcm


async def answer(session: Session, name: str) -> Heard:
    await session.send(CreateItem(Message(name, "user", (TextPart(ASKED),))))
    await session.send(CreateResponse(ResponseParams(modality="audio")))
    events = await until(session, ResponseDone)
    sound = np.concatenate([event.pcm for event in events if isinstance(event, AudioDelta)])
    done = events[-1]
    assert isinstance(done, ResponseDone) and done.response.status == "completed", done
    return Heard(done.response.voice, " ".join(map(item_text, done.response.output)), sound)


async def talk(app: App) -> list[Heard]:
    """Ada answers, Ben takes over and answers, then Ada again."""
    session, heard = app.talks.open(replace(app.talks.defaults, paced=False)), []
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        group.create_task(session.run())
        heard.append(await answer(session, "first"))
        for name in ("ben", "ada"):
            await session.send(SwitchPersona(name))
            told = (await until(session, PersonaSwitched))[-1]
            assert isinstance(told, PersonaSwitched) and (told.name, told.voice) == (name, name)
            heard.append(await answer(session, f"to {name}"))
        session.close()
    return heard


async def said_by(app: App, heard: Heard, voice: str) -> Pcm:
    """The same words in a talk that never had another voice."""
    talk = f"{voice} alone"
    async with aclosing(app.models.tts.speak(talk, voice, "piece", heard.words)) as sounds:
        sound = np.concatenate([chunk.pcm async for chunk in sounds])
    await app.models.tts.forget_talk(talk)
    return sound


@dataclass(frozen=True)
class Start:
    """What was heard, the same in the talk of one voice and of the other, and the codes that each is known by."""

    heard: list[Heard]
    alone: dict[str, list[Pcm]]
    codes: dict[str, Tensor]


def start(home: Path, voice: Path) -> Start:
    async def inside() -> Start:
        config = load_config(
            {"profile": "tiny", "asr": "pocketsphinx", "tts": str(voice)}, {"ASSISTANT_HOME": str(home)}
        )
        async with open_talks(config) as app:
            heard = await talk(app)
            alone = {name: [await said_by(app, one, name) for one in heard] for name in ("ada", "ben")}
        codes = {path.stem: read_voice_file(path).voice.codes for path in config.voices.iterdir()}
        return Start(heard, alone, {name: kept for name, kept in codes.items() if kept is not None})

    return asyncio.run(inside())


def test_whoever_takes_over_is_heard_in_a_voice_of_its_own_and_two_starts_speak_alike(
    voice: Path, tmp_path: Path
) -> None:
    one = start(tmp_path / "one", voice)
    assert [heard.voice for heard in one.heard] == ["ada", "ben", "ada"]
    for place, heard in enumerate(one.heard):
        own, other = one.alone[str(heard.voice)][place], one.alone["ben" if heard.voice == "ada" else "ada"][place]
        assert np.array_equal(heard.sound, own) and not np.array_equal(heard.sound, other)
    two = start(tmp_path / "two", voice)
    assert one.codes.keys() == two.codes.keys() == {"ada", "ben"}
    assert all(torch.equal(codes, two.codes[name]) for name, codes in one.codes.items())
    assert not torch.equal(*one.codes.values())
    for before, after in zip(one.heard, two.heard, strict=True):
        assert (before.voice, before.words) == (after.voice, after.words)
        assert np.array_equal(before.sound, after.sound)
