"""The three models that the settings name, opened by kind: here on this machine, or on a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from assistant.app.config import Config, Profile, choose_profile, reason
from assistant.app.ears import WarmingEars, begin_hearing
from assistant.app.looks import first_look
from assistant.app.places import local_path, present_profiles
from assistant.app.standing import Standing, StandingVoice, stamps
from assistant.base import memory
from assistant.base.errors import SettingError
from assistant.contracts import ASR, LLM, TTS
from assistant.device import memory_plan
from assistant.device.deployment import Deployment
from assistant.device.device_choice import CPU, CUDA, AskedDevices, Placement, place
from assistant.device.execution import gpu_free_bytes, load_on, open_context, use_threads
from assistant.device.lease import RETURNING
from assistant.device.memory_plan import LEAN_CHECKPOINTS, LEAN_VOICE_POSITIONS, Needs, Plan
from assistant.device.sleep import Sleep
from assistant.device.thread import EngineThread
from assistant.llm.language import load_language
from assistant.llm.local import LocalLLM
from assistant.llm.small import LOST, SmallMind, small_mind
from assistant.remote import RemoteLLM, RemoteTTS, is_address, read_address
from assistant.tools.builtin import TRAINED_TOOLS
from assistant.tts.local import LocalTTS, VoiceOptions
from assistant.tts.voices import load_voices
from capsules import ExecContext, Role
from capsules.journal import Journals
from capsules.nn.panels import BITS
from capsules.registry import Budgets, Registry
from llm_engine import HybridLLM, Sampling
from llm_engine import footprint as llm_footprint
from llm_engine.firstlook import FirstLook
from llm_engine.gguf.container import is_gguf
from tts_engine import footprint as tts_footprint
from tts_engine.engine import HiggsTTS
from tts_engine.state import SCOPE as VOICE_SCOPE

Report = Callable[[str], None]
MIB = 1 << 20
CURSOR_HISTORY = 512
"""Positions, some 15 s of speech: a voice that follows its text by a cursor has learnt from one to three sentences in a
row, and owes its tone to none of them."""
STOP_SECONDS = 5.0
"""Time for the last step of the engines' thread."""
SMALL_FILE_BYTES = 1 << 30
"""A GGUF file of so many bytes holds some two billion weights."""
KEPT_SECONDS = 30 * 86_400
"""A capsule is removed this long after its last use."""
PARTS, ON_GPU, IN_MEMORY = 7, 2, 1
"""The capsules' budget is cut into so many parts. Those that neither a GPU nor memory gets are on disk."""
OF_MACHINE = 16
"""Capsules never take more than this part of the machine's memory."""


@dataclass(frozen=True)
class Models:
    """The models behind every talk, and what the local ones share."""

    llm: LLM
    tts: TTS
    asr: ASR
    profile: Profile
    deployments: tuple[Deployment, ...]
    """The language model's and the voice's; one where they share a device."""
    budgets: Budgets
    """Room for the capsules of all deployments together."""
    builtin: tuple[str, ...] | None = None
    """The built-in tools that the language model is shown; None: all."""
    lost: str | None = None
    """The words for a reply that came to nothing; None: the client decides."""

    @property
    def deployment(self) -> Deployment:
        """The one whose thread and journals both share."""
        return self.deployments[0]

    @property
    def contexts(self) -> dict[str, ExecContext]:
        """The context of each model by its scope."""
        return {"llm": self.deployments[0].ctx, "tts": self.deployments[-1].ctx}

    @property
    def capsules(self) -> bool:
        """Whether both keep the state of talks here."""
        return self.llm.state is not None and self.tts.state is not None


@dataclass(frozen=True)
class VoiceFacts:
    """Everything that a voice is made of: one that was made of the same is the same. Empty for one on a server."""

    device: str = ""
    files: tuple[object, ...] = ()
    dtype: str = ""
    positions: int | None = None
    settings: tuple[object, ...] = ()


@dataclass(frozen=True)
class Opening:
    """Everything that opening a model needs. `stack` lets go at the end, the last first."""

    config: Config
    profile: Profile
    deployment: Deployment
    stack: AsyncExitStack
    report: Report
    mind: SmallMind | None
    plan: Plan
    """The room that there is on a GPU."""
    voice: VoiceFacts
    standing: Standing


async def open_models(
    config: Config, stack: AsyncExitStack, report: Report, hearing: WarmingEars | None, standing: Standing
) -> Models:
    """Load all three, the ears beside the others. Raises SettingError, AssistantError and the engines' own errors.

    hearing   the ears, if they could begin before this module was there
    standing  what stays of it is not loaded again, and what is loaded stays there
    """
    before = standing.voice.part
    free, present = gpu_free_bytes() + (before.gpu_bytes if before else 0), present_profiles(config)
    profile = choose_profile(config.profile, free, present)
    if config.profile == "auto" and (why := reason(profile, present, free)):
        report(why)
    for name, repository in (("llm", profile.llm), ("tts", profile.tts)):
        local_path(config, name, repository)  # a wrong one is told before anything takes its time
    hearing = hearing or begin_hearing(config, profile, stack, report, standing.ears)
    placed = placement(config, profile, bool(free))
    plan = _gpu_plan(config, profile, placed, free, report)
    facts = voice_facts(config, profile, placed, plan)
    voice = standing.voice.made_of(facts)
    contexts = [
        _context(config, profile, hearing, placed, device, report, voice if device == placed.tts else None)
        for device in placed.devices
    ]
    stack.callback(_leave_to_voice, contexts[-1])
    budgets = capsule_budgets(config.capsule_mb * MIB, plan.room)
    deployments = await _deployments(config, contexts, budgets, stack)
    mind = hearing.mind
    opening = Opening(config, profile, deployments[0], stack, report, mind, plan, facts, standing)
    llm, tts = await open_llm(opening), await open_tts(replace(opening, deployment=deployments[-1]))
    budgets = _limited(deployments, budgets, config.sessions)
    asr = await hearing.asr
    sleep = Sleep([deployment.ctx for deployment in deployments], config.home / "asleep")
    thread = deployments[0].thread
    thread.start(sleep)
    for deployment in deployments:
        stack.callback(deployment.registry.flush)
    stack.callback(_stop, thread, sleep, standing)
    return Models(llm, tts, asr, profile, deployments, budgets, TRAINED_TOOLS if mind else None, LOST if mind else None)


def _stop(thread: EngineThread, sleep: Sleep, standing: Standing) -> None:
    """A voice whose memory is let go, or that still speaks, does not stay."""
    thread.stop()
    if not thread.join(STOP_SECONDS) or sleep.freed_bytes:
        standing.voice.empty()
    sleep.discard()


def _leave_to_voice(ctx: ExecContext) -> None:
    """Free everything of the language model: the voice may stay in the context."""
    for scope in {buffer.scope for buffer in ctx.buffers()} - {VOICE_SCOPE}:
        ctx.release(scope)


async def open_llm(opening: Opening) -> LLM:
    """The language model, loaded or on a server."""
    config, profile, ctx = opening.config, opening.profile, opening.deployment.ctx
    if is_address(config.llm):
        remote = RemoteLLM(read_address(config.llm))
        opening.stack.push_async_callback(remote.close)
        opening.report(f"the language model runs at {config.llm}; no state is kept for it here (capsules are off)")
        return remote
    path = local_path(config, "llm", profile.llm)
    opening.report(f"loading the language model from {path}")
    engine = await asyncio.to_thread(load_engine, config, profile, ctx, opening.plan, opening.report)
    if opening.mind is None:  # a model of the shipped one's recipe knows its own phrases alone
        look = await asyncio.to_thread(first_look, engine, path, config.digests, opening.report)
        if look.trouble:
            opening.report(look.trouble)
    language = opening.mind.language() if opening.mind else load_language(path)
    sampling = Sampling.greedy() if opening.mind else Sampling(temperature=0.7, top_k=20, top_p=0.95)
    name = Path(config.llm).name if config.llm else f"{profile.name}-llm"
    return LocalLLM(opening.deployment, engine, language, name, sampling)


def load_engine(config: Config, profile: Profile, ctx: ExecContext, plan: Plan, report: Report) -> HybridLLM:
    """The language model of these settings, which is not on a server. Raises LLMError, AssistantError."""
    packed = ctx.device.type == CUDA  # a processor has no kernels for packed ones
    eyes = config.eyes if plan.eyes else "off"
    load = partial(HybridLLM.load, packed=packed, aside=config.digests, eyes=eyes, tell=report)
    if plan.lean and packed:
        load = partial(load, checkpoints=LEAN_CHECKPOINTS)
    dtype = llm_dtype(asked_dtype(config, profile), ctx.device.type)
    return load_on(ctx, load, local_path(config, "llm", profile.llm), ctx, dtype, config.max_positions)


def look_again(config: Config, report: Report) -> tuple[FirstLook, HybridLLM]:
    """Load the language model of the settings alone, and look at it whatever is known. Raises SettingError, LLMError,
    AssistantError."""
    if is_address(config.llm):
        raise SettingError(f"{config.origin('llm')}: the language model runs at {config.llm}; only files are checked")
    profile = choose_profile(config.profile, gpu_free_bytes(), present_profiles(config))
    path = local_path(config, "llm", profile.llm)
    device = placement(config, profile, bool(gpu_free_bytes())).llm
    ctx = open_context(device, config.threads, config.kernels, config.compiled, config.recordings, config.untried)
    report(f"loading the language model from {path}")
    engine = load_engine(replace(config, without=(*config.without, "vision")), profile, ctx, Plan("", 0), report)
    return first_look(engine, path, config.digests, report, narrow=small_mind(path) is not None, again=True), engine


async def open_tts(opening: Opening) -> TTS:
    """The voice, loaded and its pace measured, or on a server."""
    config, profile, deployment = opening.config, opening.profile, opening.deployment
    if is_address(config.tts):
        remote = RemoteTTS(read_address(config.tts))
        opening.stack.push_async_callback(remote.close)
        opening.report(f"the voice runs at {config.tts}; no state is kept for it here (capsules are off)")
        return remote
    path = local_path(config, "tts", profile.tts)
    if (voice := opening.standing.voice.part) is None:
        voice = await asyncio.to_thread(load_voice, opening, path)
    engine = voice.engine
    voices = await asyncio.to_thread(load_voices, engine, path, deployment.registry, config.voices)
    opening.report(pace_of(voice.row_ms))
    name = path.name if config.tts else f"{profile.name}-tts"
    history = None if engine.config.cursor is None else CURSOR_HISTORY
    return LocalTTS(deployment, engine, voices, name, VoiceOptions(config.first_chunk, history=history))


def voice_facts(config: Config, profile: Profile, placed: Placement, plan: Plan) -> VoiceFacts:
    """Raises SettingError, OSError."""
    if is_address(config.tts):
        return VoiceFacts()
    path, on_gpu = local_path(config, "tts", profile.tts), placed.tts == CUDA
    settings = (config.digests, config.kernels, config.compiled, config.recordings, config.untried)
    positions = LEAN_VOICE_POSITIONS if plan.lean and on_gpu else None
    return VoiceFacts(
        placed.tts, (path, *stamps(path)), voice_dtype(config, profile, placed.tts), positions, settings
    )


def load_voice(opening: Opening, path: Path) -> StandingVoice:
    """Load the voice's engine and measure its pace; it stays from now on. Raises TTSError, AssistantError."""
    config, ctx, facts = opening.config, opening.deployment.ctx, opening.voice
    opening.report(f"loading the voice from {path}")
    load = partial(HiggsTTS.load, max_positions=facts.positions, aside=config.digests, tell=opening.report)
    engine = load_on(ctx, load, path, ctx, facts.dtype)
    pace = engine.measure()
    voice = StandingVoice(ctx, engine, pace.row_ms + pace.frame_ms)
    opening.standing.voice.fill(facts, voice)
    return voice


def pace_of(ms: float) -> str:
    """A line for a person. `ms`: the time that a row of 40 ms of sound takes."""
    slow = "" if ms <= 40 else ", so replies will have gaps; a smaller voice is faster"
    return f"the voice is made {40 / ms:.2g} times as fast as it plays{slow}"


# -------------------------------------------------------------------- contexts, deployments, the GPU's plan


def placement(config: Config, profile: Profile, gpu: bool) -> Placement:
    """A model on a server needs no device: it is told the other's."""
    asked = AskedDevices(config.device, config.llm_device, config.tts_device)
    placed = place(asked, gpu=gpu, wants_gpu=bool(profile.gpu_bytes), large_voice=bool(profile.tts))
    if is_address(config.llm):
        return replace(placed, llm=placed.tts)
    return replace(placed, tts=placed.llm) if is_address(config.tts) else placed


async def _deployments(
    config: Config, contexts: Sequence[ExecContext], budgets: Budgets, stack: AsyncExitStack
) -> tuple[Deployment, ...]:
    """One for each context, with a registry of its own; the thread, not started yet, and the journals are for all."""
    syncing = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="journals"))
    writer = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="capsules"))
    thread, journals = EngineThread(), Journals(config.talks, syncing)
    each = replace(
        budgets, host_bytes=budgets.host_bytes // len(contexts), disk_bytes=budgets.disk_bytes // len(contexts)
    )
    found = []
    for ctx in contexts:
        # A capsule of one device is of no use to the other: each has a folder.
        apart = len(contexts) > 1 and ctx.device.type == CPU
        folder = config.capsules / "processor" if apart else config.capsules
        at = folder if config.capsule_mb else None
        registry = await asyncio.to_thread(Registry.standard, ctx, each, time.time, at, writer)
        found.append(Deployment(ctx, thread, registry, journals))
    return tuple(found)


def _context(
    config: Config, profile: Profile, hearing: WarmingEars, placed: Placement, device: str, report: Report,
    voice: StandingVoice | None,
) -> ExecContext:  # fmt: skip
    """A new one, or that of the voice if it stays."""
    small = (placed.llm != CPU or hearing.mind is not None) and (placed.tts != CPU or not profile.tts)
    threads = config.threads or (1 if small else 0)  # two threads over the shipped models' matrices lose time
    if voice is not None:
        use_threads(threads)
        return voice.ctx
    ctx = open_context(device, threads, config.kernels, config.compiled, config.recordings, config.untried)
    if " kernels " in ctx.describe() and not any(config.compiled.glob("*.so")):
        report("compiling C++ kernels for this processor: once, some ten seconds")
    return ctx


def capsule_budgets(total_bytes: int, gpu_room: int) -> Budgets:
    """One budget, shared among the tiers. The disk gets what a GPU has no room for."""
    host = total_bytes * IN_MEMORY // PARTS
    return Budgets(gpu_room, host, total_bytes - host - gpu_room, KEPT_SECONDS)


def _limited(deployments: Sequence[Deployment], budgets: Budgets, sessions: int) -> Budgets:
    """Limit the capsules in memory to what machine and models, now loaded, make of it. Returns the new budgets."""
    if not budgets.host_bytes:
        return budgets
    limits = [memory_for_capsules(one, budgets.host_bytes // len(deployments), sessions) for one in deployments]
    for one, limit in zip(deployments, limits, strict=True):
        for tier in one.registry.store.tiers:
            if tier.name == "host":
                tier.budget_bytes = limit
    return replace(budgets, host_bytes=sum(limits))


def memory_for_capsules(deployment: Deployment, most: int, sessions: int) -> int:
    """Bytes of memory for capsules, `most` at most: a small machine gives less, and so does a small model, which needs
    no more than the longest talks of all that are open or may come back."""
    states = sum(buffer.nbytes for buffer in deployment.ctx.buffers() if buffer.role is Role.STATE)
    beside = int(deployment.registry.counters.total("charged"))
    machine = memory.machine_bytes() // OF_MACHINE or most
    return min(most, machine, beside + (sessions + RETURNING) * states)


def _gpu_plan(config: Config, profile: Profile, placed: Placement, free_bytes: int, report: Report) -> Plan:
    """Room for capsules on a GPU, once the models there have theirs. A remote model takes nothing here.

    free_bytes  what is free there, with what a voice has that may stay
    """
    if CUDA not in placed.devices:
        return Plan("", 0)
    wanted = config.capsule_mb * MIB * ON_GPU // PARTS
    llm_bytes = eyes_bytes = tts_bytes = spare = 0
    dtypes = []
    if placed.llm == CUDA and not is_address(config.llm):
        path, dtype = local_path(config, "llm", profile.llm), llm_dtype(asked_dtype(config, profile), CUDA)
        needed = partial(llm_footprint.needed_bytes, path, dtype, config.max_positions, packed=True)
        llm_bytes = needed(eyes="off")
        eyes_bytes = needed(eyes=config.eyes) - llm_bytes
        spare += llm_bytes - needed(eyes="off", checkpoints=LEAN_CHECKPOINTS)
        dtypes.append(dtype)
    if placed.tts == CUDA and not is_address(config.tts):
        path, dtype = local_path(config, "tts", profile.tts), voice_dtype(config, profile, CUDA)
        tts_bytes = tts_footprint.needed_bytes(path, dtype, device=CUDA)
        spare += tts_bytes - tts_footprint.needed_bytes(path, dtype, LEAN_VOICE_POSITIONS, CUDA)
        dtypes.append(dtype)
    packed = all(dtype in ("float8", "int4") for dtype in dtypes)
    plan = memory_plan.plan(free_bytes, Needs(llm_bytes, tts_bytes, eyes_bytes, spare, packed), wanted)
    report(plan.told)
    return plan


def voice_dtype(config: Config, profile: Profile, device: str) -> str:
    """int8 and int4 in `dtype` are the language model's. Unasked, eight bits are those that the device's kernels read.

    Raises SettingError.
    """
    if config.tts_dtype == "int8" and device == CUDA:
        raise SettingError(
            "--dtype: int8 packs the voice for a processor; on a GPU use float8 or int4, or use --device cpu"
        )
    shared = "" if config.llm_dtype in BITS else config.llm_dtype
    own = "int8" if profile.voice_dtype == "float8" and device == CPU else profile.voice_dtype
    return config.tts_dtype or shared or own


def asked_dtype(config: Config, profile: Profile) -> str:
    """A GGUF file holds few bits already: unless another form is asked for, a large one is held in eight, and a small
    one, to which rounding does more harm, in sixteen."""
    path = local_path(config, "llm", profile.llm)
    if config.llm_dtype or not is_gguf(path):
        return config.llm_dtype or profile.dtype
    return "bfloat16" if path.stat().st_size < SMALL_FILE_BYTES else "float8"


def llm_dtype(dtype: str, device: str) -> str:
    """Eight bits are FP8 on a GPU; what reads as fast on a processor are integers. Raises SettingError."""
    if dtype == "int8" and device == CUDA:
        raise SettingError("--dtype: int8 packs a model for a processor; on a GPU use float8, or use --device cpu")
    return "int8" if dtype == "float8" and device == CPU else dtype
