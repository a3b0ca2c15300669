"""The language of the command line reaches the talk."""

import argparse
import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from assistant.app import start
from assistant.commands import ask, talk


class Opened(Exception):
    """Ends a command where its talk would begin."""


@pytest.mark.parametrize("command", [ask, talk])
def test_the_talk_has_the_language_of_the_command(command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    opened = []

    def open_talk(settings):
        opened.append(settings)
        raise Opened

    @asynccontextmanager
    async def open_talks(config, report, **how):
        talks = SimpleNamespace(defaults=start.settings_of(config), open=open_talk)
        yield SimpleNamespace(config=config, talks=talks)

    monkeypatch.setattr(start, "open_talks", open_talks)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--language", "de", "--persona", "ben"])
    begin = ask._ask(args) if command is ask else talk._talk(args, None)
    with pytest.raises(Opened):
        asyncio.run(begin)
    assert [(one.language, one.persona, one.memory) for one in opened] == [("de", "ben", True)]
