"""The three models that the settings name, opened by kind: here on this machine, or on a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from assistant.app.config import TINY, Config, Profile, choose_profile
from assistant.app.ears import Hearing, begin_hearing, limited
from assistant.app.older import take_over
from assistant.app.places import local_path, present_profiles
from assistant.base.errors import SettingError
from assistant.contracts import ASR, LLM, TTS
from assistant.device import memory_plan
from assistant.device.context import gpu_free_bytes, load_on, open_context
from assistant.device.deployment import Deployment
from assistant.device.sleep import Sleep
from assistant.device.thread import EngineThread
from assistant.llm.language import load_language
from assistant.llm.local import LocalLLM
from assistant.remote import RemoteLLM, RemoteTTS, is_address, read_address
from assistant.tts.local import LocalTTS, VoiceOptions
from assistant.tts.voices import load_voices
from capsules import ExecContext
from capsules.journal import Journals
from capsules.nn.panels import BITS
from capsules.registry import Budgets, Registry
from llm_engine import HybridLLM, Sampling
from llm_engine import footprint as llm_footprint
from tts_engine import footprint as tts_footprint
from tts_engine.engine import HiggsTTS

Report = Callable[[str], None]
MIB = 1 << 20
CURSOR_HISTORY = 512
"""Positions, some 15 s of speech: a voice that follows its text by a cursor has learnt from one to three sentences in a
row, and owes its tone to none of them."""
STOP_SECONDS = 5.0
"""What the engines' thread gets for its last step."""


@dataclass(frozen=True)
class Models:
    """The models behind every talk, and what the local ones share."""

    llm: LLM
    tts: TTS
    asr: ASR
    profile: Profile
    deployment: Deployment

    @property
    def capsules(self) -> bool:
        """Whether state is kept here: a server keeps its own counsel."""
        return self.llm.capsules and self.tts.capsules


@dataclass(frozen=True)
class Opening:
    """What opening a model needs to know. What `stack` gets is let go at the end, the last first."""

    config: Config
    profile: Profile
    deployment: Deployment
    stack: AsyncExitStack
    report: Report

    @property
    def llm_dtype(self) -> str:
        return llm_dtype(self.config.dtype or self.profile.dtype)

    @property
    def tts_dtype(self) -> str:
        return voice_dtype(self.config, self.profile)


async def open_models(config: Config, stack: AsyncExitStack, report: Report, hearing: Hearing | None) -> Models:
    """Load all three, the ears beside the others. Raises SettingError, AssistantError and the engines' own errors.

    hearing  the ears, if they could begin before this module was there
    """
    profile = choose_profile(config.profile, gpu_free_bytes(), present_profiles(config))
    if config.profile == "auto" and profile.llm:
        needed = profile.gpu_bytes or profile.host_bytes
        place = "GPU" if profile.gpu_bytes else "processor"
        report(f"profile {profile.name}: the largest here for which the {place} has memory free ({needed >> 30} GiB)")
    for name, repository in (("llm", profile.llm), ("tts", profile.tts)):
        local_path(config, name, repository)  # a wrong one is told before anything takes its time
    hearing = hearing or begin_hearing(config, profile, stack, report)
    deployment = await _deployment(config, profile, stack, report)
    opening = Opening(config, profile, deployment, stack, report)
    llm, tts, asr = await open_llm(opening), await open_tts(opening), await hearing
    sleep = Sleep(deployment.ctx, config.home / "asleep")
    stack.callback(sleep.close)
    deployment.thread.start(sleep)
    stack.callback(deployment.registry.close)
    stack.callback(deployment.thread.join, STOP_SECONDS)
    stack.callback(deployment.thread.stop)
    return Models(llm, tts, asr, profile, deployment)


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
    packed = ctx.device.type == "cuda"  # a processor has no kernels for packed ones
    load = partial(HybridLLM.load, packed=packed, aside=config.digests, eyes=config.vision, tell=opening.report)
    engine = await asyncio.to_thread(load_on, ctx, load, path, ctx, opening.llm_dtype, config.max_positions)
    sampling = Sampling.greedy() if profile.name == TINY else Sampling(temperature=0.7, top_k=20, top_p=0.95)
    name = path.name if config.llm else f"{profile.name}-llm"
    return LocalLLM(opening.deployment, engine, load_language(path, limited=limited(config, profile)), name, sampling)


async def open_tts(opening: Opening) -> TTS:
    """The voice, loaded and its pace measured, or on a server."""
    config, profile, deployment = opening.config, opening.profile, opening.deployment
    if is_address(config.tts):
        remote = RemoteTTS(read_address(config.tts))
        opening.stack.push_async_callback(remote.close)
        opening.report(f"the voice runs at {config.tts}; no state is kept for it here (capsules are off)")
        return remote
    path = local_path(config, "tts", profile.tts)
    opening.report(f"loading the voice from {path}")
    load = partial(HiggsTTS.load, aside=config.digests)
    engine = await asyncio.to_thread(load_on, deployment.ctx, load, path, deployment.ctx, opening.tts_dtype)
    voices = await asyncio.to_thread(load_voices, engine, path, deployment.registry, config.voices)
    pace = await asyncio.to_thread(engine.measure)
    ms = pace.row_ms + pace.frame_ms
    opening.report(f"40 ms of sound take {ms:.1f} ms here; the first chunks are cut to that")
    name = path.name if config.tts else f"{profile.name}-tts"
    history = None if engine.config.cursor is None else CURSOR_HISTORY
    return LocalTTS(deployment, engine, voices, name, VoiceOptions(config.first_chunk, history=history))


# ------------------------------------------------------------------------------- what they stand on


async def _deployment(config: Config, profile: Profile, stack: AsyncExitStack, report: Report) -> Deployment:
    """The context, its thread (not started yet) and the registry."""
    device = "cpu" if not profile.gpu_bytes and config.device == "auto" else config.device
    threads = config.threads or (1 if profile.name == TINY else 0)  # two threads over matrices this small lose time
    ctx = open_context(device, threads, config.kernels, config.compiled, config.recordings)
    if " kernels " in ctx.describe() and not any(config.compiled.glob("*.so")):
        report("compiling C++ kernels for this processor: once, some ten seconds")
    budgets = Budgets(
        gpu_bytes=_gpu_room(config, profile, ctx, report),
        host_bytes=config.capsule_host_mb * MIB,
        disk_bytes=config.capsule_disk_mb * MIB,
        ttl_s=config.capsule_days * 86_400,
    )
    writer = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="capsules"))
    folder = config.capsules if config.capsule_disk_mb else None
    registry = await asyncio.to_thread(Registry.standard, ctx, budgets, time.time, folder, writer)
    syncing = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="journals"))
    journals = Journals(config.talks, syncing)
    take_over(config.talks, journals, registry, report)
    return Deployment(ctx, EngineThread(), registry, journals)


def _gpu_room(config: Config, profile: Profile, ctx: ExecContext, report: Report) -> int:
    """Bytes for capsules on a GPU, once both models have theirs. A remote model takes nothing here."""
    wanted = config.capsule_gpu_mb * MIB
    if ctx.device.type != "cuda":
        return wanted
    dtype, tts_dtype = config.dtype or profile.dtype, voice_dtype(config, profile)
    if dtype in BITS:
        raise SettingError(
            f"dtype {dtype} packs matrices for a processor; on a GPU take bfloat16, a model published in FP8 or int4, "
            "or --device cpu"
        )
    if tts_dtype in BITS:
        raise SettingError(
            f"tts_dtype {tts_dtype} packs matrices for a processor; on a GPU take bfloat16 or float8, or --device cpu"
        )
    llm_bytes = tts_bytes = 0
    if not is_address(config.llm):
        path = local_path(config, "llm", profile.llm)
        llm_bytes = llm_footprint.needed_bytes(
            path, llm_dtype(dtype), config.max_positions, packed=True, eyes=config.vision
        )
    if not is_address(config.tts):
        tts_bytes = tts_footprint.needed_bytes(local_path(config, "tts", profile.tts), tts_dtype)
    told, room = memory_plan.plan(gpu_free_bytes(), llm_bytes, tts_bytes, wanted)
    report(told)
    return room


def voice_dtype(config: Config, profile: Profile) -> str:
    """int8 and int4 in `dtype` are the language model's."""
    shared = "" if config.dtype in BITS else config.dtype
    return config.tts_dtype or shared or profile.voice_dtype


def llm_dtype(dtype: str) -> str:
    """float8 is the voice's: a language model is packed if its files are."""
    return "bfloat16" if dtype == "float8" else dtype
