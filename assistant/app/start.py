"""From settings to talks that can be opened: models loaded, personas and voices made ready, all let go again.

    async with open_talks(load_config(), report=print) as app:
        session = app.talks.open()

The first reply is made here, silently, so that the first turn of a person is as fast as later ones.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from assistant.app.checks import check_settings
from assistant.app.config import Config, certain_profile
from assistant.app.ears import begin_hearing
from assistant.app.forgetting import Forgetting
from assistant.app.household import STORE, Play, open_household, speaks_aloud
from assistant.app.listed import ListedPersonas
from assistant.app.places import present_profiles
from assistant.app.remembered import HandsOnMemory
from assistant.app.standing import Standing
from assistant.asr.wake_words import open_wake_words
from assistant.base import memory
from assistant.base.clock import LoopClock
from assistant.base.errors import EngineFailed, SettingError
from assistant.contracts import HouseholdKeeper, Line, MemoryKeeper, Prompt, ReplyOptions, VoiceKeeper
from assistant.device.thread import EngineThread
from assistant.events import Settings
from assistant.personas import Persona
from assistant.talk import Engines, Services
from assistant.talk.archive import KEPT_DAYS
from assistant.talk.context import ToolHost
from assistant.talk.talks import Talks
from assistant.telemetry.trace import TraceLog
from assistant.tools.builtin import BuiltinTools, builtin_names, builtin_tools
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from assistant.tools.mcp.servers import McpServers
from assistant.tools.memory import FILE, MemoryFile
from assistant.tools.own import OwnTools, load_own_tools
from assistant.tools.registry import Tool, ToolRegistry
from assistant.tools.rows import MEMORY, NOTES
from assistant.tools.running import HandsOnHome
from assistant.tools.wall import wall_clock

if TYPE_CHECKING:
    from assistant.app.models import Models
    from capsules import ExecContext
    from capsules.registry import Listing

T = TypeVar("T")
Report = Callable[[str], None]
QUIET_S = 5.0
"""Without a step of the models for this long, there is time to tidy up behind the start."""


@dataclass(frozen=True)
class App:
    """The process behind the talks, as fronts see it."""

    talks: Talks
    config: Config
    models: Models
    personas: dict[str, Persona]
    home: HomeRows
    servers: McpServers
    forgetting: Forgetting
    ready_s: float

    @property
    def facts(self) -> dict[str, object]:
        """Profile, models, device, seconds until ready, memory: for `/healthz` and people."""
        models = self.models
        contexts = [deployment.ctx for deployment in models.deployments]
        return {
            "device": _devices(contexts), "deployment": " and ".join(ctx.describe() for ctx in contexts),
            "hearing": models.asr.name,
            "llm": models.llm.name, "tts": models.tts.name, "capsules": models.capsules,
            "voices": list(models.tts.voices), "profile": models.profile.name, "ready_s": round(self.ready_s, 2),
            "memory": self.memory,
        }  # fmt: skip

    @property
    def voices(self) -> VoiceKeeper | None:
        """None where the voice runs on a server."""
        from assistant.app.voices import KeptVoices
        from assistant.tts.local import LocalTTS

        tts = self.models.tts
        if not isinstance(tts, LocalTTS):
            return None
        return KeptVoices(tts.voice_folder, self.personas, lambda: self.models.asr, lambda: self.talks.voices_in_use)

    @property
    def household(self) -> HouseholdKeeper:
        """The timers, lists and notes of the home."""
        return HandsOnHome(self.home)

    @property
    def remembered(self) -> MemoryKeeper:
        """The sentences that every talk begins with."""
        earlier = partial(asyncio.to_thread, self.talks.archive.earlier)
        return HandsOnMemory(self.home, earlier, self.forgetting.forget)

    def capsules(self) -> list[Listing]:
        """Every capsule that is kept now."""
        return [one for deployment in self.models.deployments for one in deployment.registry.listing()]

    @property
    def memory(self) -> dict[str, object]:
        """Memory of this process by use, in bytes: buffers of models on the processor, and capsules with what counts
        towards their limit. The rest is ears, libraries and Python itself."""
        deployments, asleep = self.models.deployments, self.models.deployment.thread.asleep_bytes
        own = [one.ctx for one in deployments if one.ctx.device.type == "cpu"]
        counted = [one.registry.counters for one in deployments]
        return {
            "resident_bytes": memory.resident_bytes(),
            "models_bytes": max(0, sum(buffer.nbytes for ctx in own for buffer in ctx.buffers()) - asleep),
            "capsules_bytes": int(sum(one.total("bytes", tier="host") for one in counted)),
            "beside_capsules_bytes": int(sum(one.total("charged") for one in counted)),
            "capsules_limit_bytes": self.models.budgets.host_bytes,
        }

    def metrics(self) -> bytes:
        """Counters of talks, capsules and buffers, in Prometheus' text format."""
        deployments = self.models.deployments
        buffers = [buffer for deployment in deployments for buffer in deployment.ctx.buffers()]
        held = sum(buffer.tensor.numel() * buffer.tensor.element_size() for buffer in buffers)
        lines = []
        for one in deployments:
            where = (("device", one.ctx.device.type),) if len(deployments) > 1 else ()
            samples = (replace(sample, labels=(*sample.labels, *where)) for sample in one.registry.counters.samples())
            lines += [f"assistant_capsules_{sample}" for sample in samples]
        lines += [f"assistant_buffers {len(buffers)}", f"assistant_buffer_bytes {held}"]
        return self.talks.metrics.text() + "".join(f"{line}\n" for line in lines).encode()


def _devices(contexts: Sequence[ExecContext]) -> str:
    """The device of the language model, and that of the voice if it is another."""
    names = [str(ctx.device) for ctx in contexts]
    return names[0] if len(names) == 1 else f"{names[0]}, voice {names[1]}"


@asynccontextmanager
async def open_talks(
    config: Config, report: Report = lambda line: None, now: Callable[[], dt.datetime] = wall_clock,
    *, play: Play | None = None, stays: bool = True, pages: bool = False, standing: Standing | None = None,
) -> AsyncIterator[App]:
    """Load everything that the settings name. `report` gets each step as a line for a person; `now` is the wall clock.
    `play`: the loudspeaker for timers while no front is connected. `stays`: the program outlives its talks, so it may
    promise to ring; `pages`: they come and go in pages, so it waits for no slow MCP server, and without a loudspeaker
    it promises no more than they can. `standing`: parts of an earlier opening, which stay if these settings let them.
    Raises SettingError, AssistantError and the engines' own errors for models that cannot be used.
    """
    begin = time.monotonic()
    _make_home(config.home)
    personas = check_settings(config)
    async with AsyncExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=config.sessions + 2, thread_name_prefix="hearing"))
        own = await asyncio.to_thread(load_own_tools, config.home, builtin_names())
        servers, started = await stack.enter_async_context(_mcp_servers(config, own, report))
        models = await _models(config, stack, report, standing or Standing())
        if not pages:
            await started
        memory = MemoryFile(config.home / FILE)
        aloud = play and speaks_aloud(models.tts, config.voice or personas[config.persona].voice or "", play)
        home = stack.enter_context(closing(HomeRows(config.home / STORE, now, aloud, stays, memory, pages)))
        open_household(home, config.home, models.deployment.journals, report)
        tools = partial(_own_tools, personas, home=home, own=lambda: (*own.tools, *servers.tools), names=models.builtin)
        services = _services(
            config, models, personas, pool, tools, servers, memory,
            lambda fact: forgetting.forget(fact),  # noqa: PLW0108 - it is made below
        )  # fmt: skip
        talks = Talks(
            services, limit=config.sessions, settings=settings_of(config),
            journals=models.deployment.journals, pictures=config.home / "pictures",
        )  # fmt: skip
        stack.callback(talks.close)
        forgetting = await stack.enter_async_context(Forgetting(talks, models, home))
        await _delete_old(talks, report)
        listed = ListedPersonas(services, talks.defaults, config.home / "personas")
        await _rehearse(talks, personas[config.persona], listed.beginnings(), report)
        app = App(talks, config, models, personas, home, servers, forgetting, time.monotonic() - begin)
        report(f"ready after {app.ready_s:.1f} s")
        thread = models.deployment.thread
        idle = (listed.run(), _tidy(thread), _fall_asleep(thread, config.sleep_after * 60, report))
        behind = [asyncio.create_task(work) for work in idle]
        try:
            yield app
        finally:
            for task in behind:
                task.cancel()
            await asyncio.wait(behind)


async def _delete_old(talks: Talks, report: Report) -> None:
    if gone := await asyncio.to_thread(talks.archive.delete_old, time.time()):
        report(f"{gone} talks without a name, last open {KEPT_DAYS} days ago or more, were deleted")


@asynccontextmanager
async def _mcp_servers(
    config: Config, own: OwnTools, report: Report
) -> AsyncIterator[tuple[McpServers, asyncio.Task[None]]]:
    """Those of `mcp.json`, which start while the models are loaded; the task is done when they have."""
    servers = McpServers.of_home(config.home, (*builtin_names(), *(tool.spec.name for tool in own.tools)))

    async def start() -> None:
        _report_all(report, own.problems)
        await servers.start()
        _report_all(report, servers.problems)

    starting = asyncio.create_task(start())
    try:
        yield servers, starting
    finally:
        starting.cancel()
        await asyncio.wait([starting])
        await servers.stop()


async def _models(config: Config, stack: AsyncExitStack, report: Report, standing: Standing) -> Models:
    """Loading torch takes as long as everything else, so the ears, which do not need it, load beside it, and requests
    are answered meanwhile."""
    profile = certain_profile(config, present_profiles(config))
    hearing = None if profile is None else begin_hearing(config, profile, stack, report, standing.ears)
    report("loading the libraries")
    with _no_collection():
        await asyncio.to_thread(import_module, "assistant.app.models")
        from assistant.app.models import open_models

        return await open_models(config, stack, report, hearing, standing)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector from looking again and again through a million objects that stay."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


async def _tidy(thread: EngineThread) -> None:
    """Give back what loading left over, once nobody has needed the models for a while: it takes a seventh of a second
    in which nothing else runs. From then on what talks left over, whenever it is quiet again."""
    await _quiet(thread, QUIET_S)
    from assistant.device.execution import give_back_freed, give_back_memory

    await asyncio.to_thread(give_back_memory)
    while True:
        steps = thread.steps
        while thread.steps == steps:
            await asyncio.sleep(QUIET_S)
        await _quiet(thread, QUIET_S)
        await asyncio.to_thread(give_back_freed)


async def _fall_asleep(thread: EngineThread, after_s: float, report: Report) -> None:
    """Put the models to sleep when nobody has needed them for this long. If they cannot, that is reported once."""
    try:
        while after_s:
            await _quiet(thread, after_s)
            if thread.asleep_bytes == 0 and (freed := await thread.fall_asleep()):
                report(f"the models sleep; {freed / 1e6:.0f} MB of memory are free until they are needed")
    except EngineFailed as error:
        report(str(error))


async def _quiet(thread: EngineThread, seconds: float) -> None:
    """Return when no step was made for this many seconds."""
    seen = -1
    while thread.steps != seen:
        seen = thread.steps
        await asyncio.sleep(seconds)


def _report_all(report: Report, *lines: Iterable[str]) -> None:
    for line in chain(*lines):
        report(line)


def settings_of(config: Config) -> Settings:
    """The settings of a talk whose front asks for none."""
    return Settings(persona=config.persona, language=config.language or None, voice=config.voice or None)


def _make_home(home: Path) -> None:
    """Raises SettingError where nothing can be kept."""
    try:
        for folder in ("capsules", "talks", "logs"):
            (home / folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"{home} cannot be used ({error.strerror}); point ASSISTANT_HOME at a folder that can be written"
        ) from error


def _services(
    config: Config, models: Models, personas: dict[str, Persona], pool: ThreadPoolExecutor,
    tools: Callable[..., ToolRegistry], servers: McpServers, memory: MemoryFile,
    forget: Callable[[str], Awaitable[bool]],
) -> Services:  # fmt: skip
    return Services(
        Engines(models.llm, models.tts, models.asr),
        LoopClock(),
        personas,
        partial(_in_pool, pool),
        tools=tools,
        lost=models.lost,
        trace_log=TraceLog(config.logs / "turns.jsonl"),
        candidates=config.uses("candidates"),
        echo=config.uses("echo"),
        wake_words=open_wake_words(config.home / "wake"),
        servers=servers,
        thinks=() if models.builtin is None else ("en",),
        speaks=models.tts.languages,
        facts=memory.facts if models.builtin is None else tuple,  # the shipped model reads nothing but its notes
        forget=forget,
    )


def _own_tools(
    personas: dict[str, Persona], session: ToolHost, home: HomeRows,
    *, own: Callable[[], Iterable[Tool]] = tuple, names: Sequence[str] | None = None,
) -> ToolRegistry:  # fmt: skip
    small = names is not None  # it knows the tool for notes, and none for the memory
    household = BuiltinTools(
        Kept(
            home, lambda: MEMORY if small and session.settings.memory else NOTES, lambda: session.settings.passing
        ),
        home.now,
        {name: persona.title for name, persona in personas.items()},
        lambda: session.settings.persona,
        lambda: session.undoing,
    )
    return builtin_tools(household, own(), names)


async def _rehearse(talks: Talks, persona: Persona, beginnings: Mapping[str, Prompt], report: Report) -> None:
    """Make persona and voice ready, and one silent reply, so that every path has run once."""
    report(f"rehearsing as {persona.title}")
    llm, tts = talks.engines.llm, talks.engines.tts
    begins = f"persona/{persona.name}"
    await llm.warm({begins: beginnings[begins]})
    await tts.warm(persona.voice)
    asked = replace(beginnings[begins], lines=(Line("user", "Hello."),))
    async with aclosing(llm.reply("rehearsal", asked, ReplyOptions("rehearsal.0", 12))) as pieces:
        async for _ in pieces:
            pass
    async with aclosing(tts.speak("rehearsal", persona.voice, "rehearsal", "Hello there.")) as sounds:
        async for _ in sounds:
            pass
    for engine in talks.engines.stateful:
        await engine.forget_talk("rehearsal")


async def _in_pool(pool: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, function)
