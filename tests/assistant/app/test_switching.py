"""The switch as a state machine: one set of models is open at a time, and what cannot be opened changes nothing."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from assistant.app.chosen import SwitchState
from assistant.app.config import Config, load_config
from assistant.app.switching import Choices, run_switching
from assistant.base.errors import AssistantError, PeerError
from tests.fakes.loop import run

FIRST = load_config({"llm": "first"}, {})


class House:
    """Opens settings; names that begin with `bad` cannot be opened."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.told: list[str] = []
        self.served: asyncio.Queue[str] = asyncio.Queue()

    @asynccontextmanager
    async def opened(self, config: Config) -> AsyncIterator[str]:
        assert not self.open, "the former models are still there"
        await asyncio.sleep(1)
        if config.llm.startswith("bad"):
            raise AssistantError(f"{config.llm} does not load")
        self.open.append(config.llm)
        try:
            yield config.llm
        finally:
            await asyncio.sleep(1)
            self.open.remove(config.llm)

    async def pause(self) -> None:
        self.told.append(f"pause {self.open[0]}")

    def freed(self) -> None:
        assert not self.open
        self.told.append("freed")


def named(name: str) -> Config:
    return load_config({"llm": name}, {})


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_chosen_one_is_open_and_a_failure_goes_back(seed: int) -> None:
    async def story() -> None:
        chance, house, choices = random.Random(seed), House(), Choices()
        keeping = asyncio.create_task(
            run_switching(FIRST, choices, house.opened, house.served.put_nowait, house.pause, house.freed)
        )
        current = await house.served.get()
        for number in range(12):
            wanted = f"{chance.choice(['good', 'bad'])}{number}"
            choices.choose(wanted, named(wanted))
            with pytest.raises(PeerError, match=f"{wanted} is being loaded"):
                choices.choose("another", named("another"))
            answers = await house.served.get()
            assert answers == (current if wanted.startswith("bad") else wanted) and house.open == [answers]
            failed = wanted.startswith("bad")
            assert choices.state.phase == ("failed" if failed else "done") and choices.state.model == wanted
            assert choices.state.told == (f"{wanted} does not load" if failed else "")
            assert house.told[-2 - failed] == f"pause {current}" and house.told[-1] == "freed"
            current = answers
        keeping.cancel()
        await asyncio.wait([keeping])
        assert house.open == []

    run(story())


def test_a_kept_choice_that_does_not_open_gives_way_to_the_settings() -> None:
    async def story() -> None:
        house, choices = House(), Choices(SwitchState("switching", "bad"))
        keeping = asyncio.create_task(
            run_switching(
                named("bad"), choices, house.opened, house.served.put_nowait, house.pause, house.freed, FIRST
            )
        )
        assert await house.served.get() == "first"
        assert choices.state == SwitchState("failed", "bad", "bad does not load")
        keeping.cancel()
        await asyncio.wait([keeping])

    run(story())


def test_the_first_settings_must_open() -> None:
    async def story() -> None:
        house = House()
        with pytest.raises(AssistantError, match="bad does not load"):
            await run_switching(named("bad"), Choices(), house.opened, print, house.pause, house.freed)

    run(story())
