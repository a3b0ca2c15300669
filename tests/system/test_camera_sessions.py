"""Whole sessions of LiveKit's and Pipecat's own clients with a camera on, against a server of ours.

Their packages pull in half a gigabyte, so they are not among what the tests install; they have an environment of their
own, and `camera_client.py` runs in it. To un-skip:

    python -m venv ~/clients && ~/clients/bin/pip install livekit-agents livekit-plugins-openai 'pipecat-ai[openai]'
    ASSISTANT_CLIENTS=~/clients/bin/python python -m pytest tests/system/test_camera_sessions.py
"""

import asyncio
import json
import os
from pathlib import Path

import numpy as np
import pytest

from assistant.base.pcm import to_pcm16
from assistant.contracts import Prompt
from tests.fakes.talk import World
from tests.fakes.web import Site, run

PYTHON = os.environ.get("ASSISTANT_CLIENTS")
CLIENT = Path(__file__).with_name("camera_client.py")
pytestmark = pytest.mark.skipif(
    PYTHON is None,
    reason="no ASSISTANT_CLIENTS, a Python with livekit-agents, livekit-plugins-openai and pipecat-ai[openai], to run",
)
SHOWN = 3
"""Frames before each turn, one a second; the n-th is of 20 n grey."""


class Watching:
    """Says how much it was shown, and keeps what that was."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []

    def answer(self, prompt: Prompt) -> list[str]:
        self.prompts.append(prompt)
        return [f"{len(prompt.lines[-1].pictures)} seen."]


async def client(site: Site, kind: str, sound: Path) -> dict:
    process = await asyncio.create_subprocess_exec(
        str(PYTHON), str(CLIENT), kind, site.http, str(sound), str(SHOWN),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()[-3000:]
    return json.loads(out.decode().splitlines()[-1])


def spoken(world: World) -> bytes:
    """Two turns, each with the silence behind it."""
    pause = np.zeros(int(1.5 * 24_000), np.float32)
    turns = (np.full(24_000, world.asr.spoken(text, 1.0)[0]) for text in ("what is this", "and now"))
    return b"".join(to_pcm16(np.concatenate([turn, pause])) for turn in turns)


def greys(prompt: Prompt) -> list[list[int]]:
    """Of each of the user's lines, what its pictures show."""
    users = [line for line in prompt.lines if line.role == "user"]
    return [[round(float(placed.picture.pixels.mean())) for placed in line.pictures] for line in users]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["livekit", "pipecat"])
def test_a_camera_is_on_for_two_turns(kind: str, tmp_path: Path) -> None:
    """Of each turn's frames the newest is seen, one; nothing ends the call, and both turns are answered aloud."""
    watching = Watching()
    world = World(watching.answer, sees=True, speed=20.0)

    async def story(site: Site) -> None:
        sound = tmp_path / "spoken.raw"
        sound.write_bytes(spoken(world))
        told = await client(site, kind, sound)
        assert told["errors"] == []
        assert [reply["words"] for reply in told["replies"]] == ["1 seen.", "1 seen."]
        assert all(reply["samples"] > 2400 for reply in told["replies"])

    run(story, world=world)
    first, second = greys(watching.prompts[0]), greys(watching.prompts[-1])
    assert [len(one) for one in second] == [1, 1], second
    assert first[0][0] == pytest.approx(20 * SHOWN, abs=2) and second[1][0] == pytest.approx(40 * SHOWN, abs=2)
