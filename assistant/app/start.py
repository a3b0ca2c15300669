"""From settings to talks that can be opened: engines loaded, personas and voices made ready, all let go again.

    async with open_talks(load_config(), report=print) as house:
        session = house.talks.open()

The first reply is made here, silently, so that the first turn of a person is as fast as later ones.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.app.config import Config, Profile, choose_profile
from assistant.base.clock import LoopClock
from assistant.base.errors import SettingError
from assistant.contracts import LLM, TTS, Line, Prompt, ReplyOptions
from assistant.events import ServerVad, Settings
from assistant.personas import Persona, load_personas
from assistant.talk import Engines, Services, Session
from assistant.talk.talks import Talks
from assistant.telemetry.metrics import Metrics
from assistant.telemetry.trace import TraceLog
from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.kept import Kept
from assistant.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from assistant.device.thread import EngineThread
    from capsules import ExecContext
    from llm_engine import HybridLLM
    from tts_engine.engine import HiggsTTS

Report = Callable[[str], None]
MIB = 1 << 20


@dataclass(frozen=True)
class App:
    """What a front may ask of the process behind its talks."""

    talks: Talks
    config: Config
    profile: Profile
    personas: dict[str, Persona]
    facts: dict[str, Any]
    """Profile, models, device, seconds until ready: for `/healthz` and people."""
    capsules: Callable[[], list[dict[str, Any]]] = field(default=list)
    """What is kept now, for people."""
    capsule_metrics: Callable[[], bytes] = field(default=bytes)
    engines: LocalEngines | None = None
    """For a benchmark, while no talk is open. None if one of them is remote."""


@dataclass(frozen=True)
class LocalEngines:
    """The engines themselves and the thread that may use them."""

    ctx: ExecContext
    engine_thread: EngineThread
    llm: HybridLLM
    tts: HiggsTTS


def _wall_clock() -> dt.datetime:
    return dt.datetime.now().astimezone()


@asynccontextmanager
async def open_talks(
    config: Config, report: Report = lambda line: None, now: Callable[[], dt.datetime] = _wall_clock
) -> AsyncIterator[App]:
    """Load everything that the settings name. `report` is told each step as a line for a person; `now` is the time
    that the tools tell.

    Raises SettingError, AssistantError and the engines' own errors for models that cannot be used.
    """
    begin = time.monotonic()
    _make_home(config.home)
    personas = load_personas(config.home / "personas")
    if config.persona not in personas:
        raise SettingError(
            f"{config.origin('persona')}: there is no persona {config.persona!r}; known: {', '.join(personas)}"
        )
    async with AsyncExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=config.sessions + 2, thread_name_prefix="hearing"))
        offload = partial(_in_pool, pool)
        engines = await _engines(config, stack, report)
        services = Services(
            engines.models,
            LoopClock(),
            personas,
            offload,
            tools=partial(_own_tools, personas, now=now),
            metrics=Metrics(),
            trace_log=TraceLog(config.logs / "turns.jsonl"),
        )
        talks = Talks(
            services,
            limit=config.sessions,
            settings=Settings(persona=config.persona, voice=config.voice or None, turn_detection=ServerVad()),
            folder=config.talks,
        )
        stack.callback(talks.close)
        await _rehearse(talks, personas[config.persona], report)
        ready_s = time.monotonic() - begin
        report(f"ready after {ready_s:.1f} s")
        facts = {**engines.facts, "profile": engines.profile.name, "ready_s": round(ready_s, 2)}
        yield App(
            talks, config, engines.profile, personas, facts, engines.capsules, engines.capsule_metrics, engines.local
        )


@dataclass(frozen=True)
class _Loaded:
    models: Engines
    profile: Profile
    facts: dict[str, Any]
    capsules: Callable[[], list[dict[str, Any]]]
    capsule_metrics: Callable[[], bytes]
    local: LocalEngines | None


async def _engines(config: Config, stack: AsyncExitStack, report: Report) -> _Loaded:
    from assistant.asr.local import LocalASR
    from assistant.device.context import gpu_free_bytes, load_on, open_context
    from assistant.device.thread import EngineThread
    from assistant.llm.language import load_language
    from assistant.llm.local import LocalLLM
    from assistant.remote import RemoteLLM, RemoteTTS, is_address, read_address
    from assistant.tts.local import LocalTTS, load_voices
    from capsules.registry import Budgets, Registry
    from llm_engine import HybridLLM, Sampling
    from tts_engine.engine import HiggsTTS
    from tts_engine.text import speech_text

    profile = choose_profile(config.profile, gpu_free_bytes(), _present(config))
    device = "cpu" if profile.name == "tiny" and config.device == "auto" else config.device
    threads = config.threads or (1 if profile.name == "tiny" else 0)  # two threads over matrices this small lose time
    ctx = open_context(device, threads, config.kernels, config.compiled)
    dtype = config.dtype or profile.dtype
    llm_dtype = "bfloat16" if dtype == "float8" else dtype
    ears = LocalASR()
    warming = asyncio.ensure_future(asyncio.to_thread(ears.warm))
    stack.push_async_callback(_settled, warming)
    engine_thread = EngineThread()
    facts: dict[str, Any] = {"device": str(ctx.device), "deployment": ctx.describe(), "hearing": ears.name}
    if " kernels " in ctx.describe() and not any(config.compiled.glob("*.so")):
        report("compiling C++ kernels for this processor: once, some ten seconds")
    local_llm, local_tts = not is_address(config.llm), not is_address(config.tts)
    room = config.capsule_gpu_mb * MIB
    if ctx.device.type == "cuda":
        told, room = _gpu_plan(config, profile, llm_dtype, dtype, gpu_free_bytes())
        report(told)
    budgets = Budgets(
        gpu_bytes=room,
        host_bytes=config.capsule_host_mb * MIB,
        disk_bytes=config.capsule_disk_mb * MIB,
    )
    writer = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="capsules"))
    registry = await asyncio.to_thread(
        Registry.standard, ctx, budgets, time.time, config.capsules if config.capsule_disk_mb else None, writer
    )
    thinker: LLM
    speaker: TTS
    llm: HybridLLM | None = None
    tts: HiggsTTS | None = None
    if local_llm:
        path = _model_path(config, config.llm, profile.llm, "llm_engine")
        report(f"loading the language model from {path}")
        load = partial(HybridLLM.load, packed=ctx.device.type == "cuda")  # a processor has no kernels for packed ones
        llm = await asyncio.to_thread(load_on, ctx, load, path, ctx, llm_dtype, config.max_positions)
        sampling = Sampling.greedy() if profile.name == "tiny" else Sampling(temperature=0.7, top_k=20, top_p=0.95)
        language = load_language(path, limited=not config.llm and not profile.llm)
        thinker = LocalLLM(
            engine_thread, llm, language, registry, path.name if config.llm else f"{profile.name}-llm",
            sampling=sampling, folder=config.talks,
        )  # fmt: skip
    else:
        remote = RemoteLLM(read_address(config.llm))
        stack.push_async_callback(remote.close)
        thinker = remote
        report(f"the language model runs at {config.llm}; no state is kept for it here (capsules are off)")
    if local_tts:
        path = _model_path(config, config.tts, profile.tts, "tts_engine")
        report(f"loading the voice from {path}")
        tts = await asyncio.to_thread(load_on, ctx, HiggsTTS.load, path, ctx, dtype)
        voices = await asyncio.to_thread(load_voices, tts, path, registry)
        speaker = LocalTTS(
            engine_thread, tts, voices, registry, path.name if config.tts else f"{profile.name}-tts",
            first_chunk=config.first_chunk, spoken=speech_text,
        )  # fmt: skip
    else:
        remote_voice = RemoteTTS(read_address(config.tts))
        stack.push_async_callback(remote_voice.close)
        speaker = remote_voice
        report(f"the voice runs at {config.tts}; no state is kept for it here (capsules are off)")
    await warming
    if tts is not None:
        pace = await asyncio.to_thread(tts.measure)
        report(f"40 ms of sound take {pace.row_ms + pace.frame_ms:.1f} ms here; the first chunks are cut to that")
    engine_thread.start()
    stack.callback(registry.close)
    stack.callback(engine_thread.join, 5.0)
    stack.callback(engine_thread.stop)
    facts |= {
        "llm": thinker.name, "tts": speaker.name, "capsules": thinker.capsules and speaker.capsules,
        "voices": list(speaker.voices),
    }  # fmt: skip
    return _Loaded(
        Engines(thinker, speaker, ears),
        profile,
        facts,
        lambda: [_listed(one) for one in registry.listing()],
        lambda: _metrics_text(registry.counters.samples(), ctx.buffers()),
        LocalEngines(ctx, engine_thread, llm, tts) if llm is not None and tts is not None else None,
    )


def _gpu_plan(config: Config, profile: Profile, llm_dtype: str, dtype: str, free_bytes: int) -> tuple[str, int]:
    """See `assistant.memory.plan`. A remote model takes nothing here."""
    from assistant.device.memory_plan import plan
    from assistant.remote import is_address
    from llm_engine import memory as llm_memory
    from tts_engine import memory as tts_memory

    llm_bytes = tts_bytes = 0
    if not is_address(config.llm):
        path = _model_path(config, config.llm, profile.llm, "llm_engine")
        llm_bytes = llm_memory.needed_bytes(path, llm_dtype, config.max_positions, packed=True)
    if not is_address(config.tts):
        tts_bytes = tts_memory.needed_bytes(_model_path(config, config.tts, profile.tts, "tts_engine"), dtype)
    return plan(free_bytes, llm_bytes, tts_bytes, config.capsule_gpu_mb * MIB)


def _make_home(home: Path) -> None:
    """Raises SettingError where nothing can be kept."""
    try:
        for folder in ("capsules", "talks", "logs"):
            (home / folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"{home} cannot be used ({error.strerror}); point ASSISTANT_HOME at a folder that can be written"
        ) from error


def _model_path(config: Config, asked: str, repository: str, package: str) -> Path:
    """A directory: the one asked for, the fetched one of the profile, or the shipped one."""
    if asked:
        path = Path(asked).expanduser()
    elif repository:
        path = config.models / repository.replace("/", "--")
    else:
        path = Path(str(resources.files(package))) / "tiny"
    if not (path / "config.json").is_file():
        advice = f"`assistant pull {repository}` fetches it" if repository and not asked else "name another directory"
        raise SettingError(f"there is no model in {path}; {advice}")
    return path


def _present(config: Config) -> list[str]:
    """Profiles whose models are on this machine."""
    from assistant.app.config import PROFILES
    from assistant.app.hub import is_present, model_folder

    def here(repository: str) -> bool:
        return is_present(model_folder(config.models, repository))

    return [name for name, profile in PROFILES.items() if profile.llm and here(profile.llm) and here(profile.tts)]


def _own_tools(
    personas: dict[str, Persona], session: Session, now: Callable[[], dt.datetime] = _wall_clock
) -> ToolRegistry:
    household = BuiltinTools(
        Kept(session.say, now),
        now,
        {name: persona.title for name, persona in personas.items()},
        lambda: session.settings.persona,
        lambda: session.undoing,
    )
    return builtin_tools(household)


async def _rehearse(talks: Talks, persona: Persona, report: Report) -> None:
    """Make persona and voice ready, and one silent reply, so that every path has run once."""
    report(f"rehearsing as {persona.title}")
    rehearsal = talks.open()
    specs = rehearsal.own_tool_specs
    rehearsal.close()
    await rehearsal.run()
    llm, tts = talks.engines.llm, talks.engines.tts
    prompt = Prompt(persona.instructions, specs)
    await llm.warm(prompt)
    await tts.warm(persona.voice)
    asked = Prompt(persona.instructions, specs, (Line("user", "Hello."),))
    async with aclosing(llm.reply("rehearsal", asked, ReplyOptions("rehearsal.0", 12))) as pieces:
        async for _ in pieces:
            pass
    async with aclosing(tts.speak("rehearsal", persona.voice, "rehearsal", "Hello there.")) as sounds:
        async for _ in sounds:
            pass
    await llm.forget("rehearsal")
    await tts.forget("rehearsal")


async def _in_pool(pool: ThreadPoolExecutor, function: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, function)


async def _settled(task: asyncio.Future[Any]) -> None:
    await asyncio.wait([task])


def _listed(one: Any) -> dict[str, Any]:
    return {
        "key": one.key, "name": one.name, "label": one.label, "engine": one.scope, "position": one.position,
        "tiers": dict(one.homes), "pinned": one.pinned, "idle_s": round(one.idle_s, 1),
    }  # fmt: skip


def _metrics_text(samples: Iterable[Any], buffers: Sequence[Any]) -> bytes:
    """The registry's counters and the engines' buffers in Prometheus' text format."""
    held = sum(buffer.tensor.numel() * buffer.tensor.element_size() for buffer in buffers)
    lines = [f"assistant_capsules_{sample}" for sample in samples]
    lines += [f"assistant_buffers {len(buffers)}", f"assistant_buffer_bytes {held}"]
    return "".join(f"{line}\n" for line in lines).encode()
