"""`assistant mcp`: servers listed and tried, and the assistant as a server that speaks, listens and asks."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from assistant import cli
from assistant.base.channel import Channel
from assistant.base.errors import AssistantError
from assistant.commands._server import RunningServer
from assistant.commands._spoken import NOBODY, PersonHere, spoken_server
from assistant.events import Pcm
from tests.fakes.web import Site, run

pytest.importorskip("mcp", reason="no mcp here; `make test` installs it")
SERVER = Path(__file__).parents[2] / "fakes" / "mcp_server.py"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    tmp_path.chmod(0o755)
    server = {"command": sys.executable, "args": [str(SERVER), str(tmp_path / "done.txt")], "confirm": True}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"papers": server}}))
    (tmp_path / "mcp.json").chmod(0o600)
    return tmp_path


def test_ls_lists_tools_and_what_is_wrong(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", "ls"]) == 1
    told = capsys.readouterr().out
    assert "papers: 8 tools" in told and "the tool 'bad_type' is left out" in told
    rows = {line.split()[0]: line for line in told.splitlines() if line.startswith("  ")}
    assert "reads" in rows["look"] and "Look something up." in rows["look"] and "asks first" in rows["put"]
    (home / "mcp.json").unlink()
    for command, status in (["ls"], 0), (["try", "papers", "look"], 1):
        assert cli.main(["mcp", *command]) == status and "there is no mcp.json" in capsys.readouterr().out


def test_try_calls_a_tool(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", "try", "papers", "look", '{"text": "a star"}']) == 0
    assert capsys.readouterr().out == "seen a star\n"
    assert cli.main(["mcp", "try", "papers", "fail"]) == 1 and "out of paper" in capsys.readouterr().out
    assert cli.main(["mcp", "try", "papers", "nothing"]) == 1 and "papers has no tool" in capsys.readouterr().err
    assert cli.main(["mcp", "try", "nobody", "look"]) == 1 and "known: papers" in capsys.readouterr().err


def test_a_missing_package_is_one_sentence(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mcp", "mcp.server.mcpserver"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli.main(["mcp", "ls"]) == 1
    assert "pip install 'voice-assistant[mcp]'" in capsys.readouterr().out
    assert cli.main(["mcp", "serve"]) == 1
    assert "pip install 'voice-assistant[mcp]'" in capsys.readouterr().err


class Room:
    """A loudspeaker that keeps what it played, and a microphone that hears somebody say `words`."""

    def __init__(self, site: Site, words: str = "", loudspeaker: bool = True) -> None:
        self.played: list[Pcm] = []
        self._site, self._words, self._works = site, words, loudspeaker

    async def play(self, sound: AsyncIterator[Pcm]) -> bool:
        self.played += [pcm async for pcm in sound]
        return self._works

    @asynccontextmanager
    async def microphone(self) -> AsyncIterator[Channel[Pcm]]:
        blocks: Channel[Pcm] = Channel(1000)
        if self._words:
            level = self._site.world.asr.spoken(self._words, 0.8)[0]
            sound = np.concatenate([np.full(19_200, level, np.float32), np.zeros(40_000, np.float32)])
            for start in range(0, sound.size, 480):
                assert blocks.offer(sound[start : start + 480])
        yield blocks


def through_mcp(words: str, story: Callable[..., object], loudspeaker: bool = True) -> None:
    """A program that calls our tools, as it would over stdin and stdout."""
    from mcp import Client

    async def whole(site: Site) -> None:
        room = Room(site, words, loudspeaker)
        spoken = PersonHere(RunningServer(site.http, "any"), room.play, room.microphone)
        async with Client(spoken_server(spoken)) as client:
            await story(client, room)  # type: ignore[misc]

    run(whole)


def test_another_program_speaks_listens_and_asks() -> None:
    async def story(client, room) -> None:  # type: ignore[no-untyped-def]
        assert [tool.name for tool in (await client.list_tools()).tools] == ["speak", "listen", "ask"]
        assert (await client.call_tool("speak", {"text": "hello there"})).content[0].text == "said"
        assert sum(pcm.size for pcm in room.played) == 2 * 7200
        assert (await client.call_tool("listen", {})).content[0].text == "over the bridge"
        answer = await client.call_tool("ask", {"question": "which way"})
        assert answer.content[0].text == "over the bridge" and sum(pcm.size for pcm in room.played) == 4 * 7200

    through_mcp("over the bridge", story)


def test_silence_and_a_missing_loudspeaker_are_words() -> None:
    async def story(client, room) -> None:  # type: ignore[no-untyped-def]
        assert (await client.call_tool("listen", {"seconds": 1})).content[0].text == NOBODY
        spoken = await client.call_tool("speak", {"text": "hello"})
        assert spoken.is_error and "there is no loudspeaker" in spoken.content[0].text

    through_mcp("", story, loudspeaker=False)


def test_a_server_that_does_not_run_is_named() -> None:
    async def whole() -> None:
        spoken = PersonHere(RunningServer("http://127.0.0.1:9", ""), None, None)  # type: ignore[arg-type]
        with pytest.raises(AssistantError, match="there is no server at http"):
            [pcm async for pcm in spoken._sound("hello", "")]

    asyncio.run(whole())
