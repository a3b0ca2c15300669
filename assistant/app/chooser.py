"""The chooser of language models: the one that answers, others on this machine, others that could be fetched.

`here` are models of any program on this machine; `offers` are the profiles of `assistant pull` whose voice is the
shipped one. A model is fetched or switched to only when somebody asks for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from assistant.app.chosen import keep_choice
from assistant.app.config import PROFILES, TINY, Config, Profile
from assistant.app.fetching import ModelFetch
from assistant.app.found import FOLDER, FoundModel, known_models
from assistant.app.hub import begun_bytes, is_fetched, is_present, model_folder
from assistant.app.looks import known_look
from assistant.app.places import local_path, shipped
from assistant.app.standing import Standing
from assistant.app.switching import Choices
from assistant.app.verdict import Verdict, verdict
from assistant.base import memory
from assistant.base.errors import PeerError, SettingError
from assistant.device.execution import gpu_free_bytes
from assistant.device.memory_plan import GIB
from assistant.remote import is_address

SHIPPED = "shipped"
SMALL_BYTES = 1 << 30
"""A folder of so many bytes is loaded as it is; a larger one in eight bits, as its needs are told."""
EXPECT_CPU = "Knows much more than the shipped model and answers in its own words; on a processor replies begin later."
EXPECT_GPU = "Knows much more than the shipped model and answers in its own words; made for a GPU."
UNTRIED = "Its trained weights have not been run here before."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Running:
    """The settings and the profile that run now."""

    config: Config
    profile: Profile

    @property
    def path(self) -> Path | None:
        """The place of the language model; None: it is on a server."""
        return None if is_address(self.config.llm) else local_path(self.config, "llm", self.profile.llm)


class LanguageModels:
    """`assistant.contracts.ModelKeeper`. It outlives every model: `runs` is called when one was opened.

    config  the settings without any choice
    """

    def __init__(self, config: Config, choices: Choices) -> None:
        self._first, self._choices = config, choices
        self.standing = Standing()
        """Parts that a switch leaves loaded."""
        self._fetch = ModelFetch(config.models)
        self._running: Running | None = None
        self._verdicts: dict[tuple[object, ...], Verdict] = {}
        # By folder, as the profile that needs the least holds it: the first of its model.
        ours = [one for one in reversed(PROFILES.values()) if one.llm]
        self._profiles = {model_folder(config.models, one.llm): one.dtype for one in ours}

    def runs(self, config: Config, profile: Profile) -> None:
        self._running = Running(config, profile)
        if self._choices.state.phase == "done":
            try:
                keep_choice(config)
            except OSError as error:  # it answers all the same
                log.warning("the choice of a model ends with this process: %s", error)

    def halt_fetch(self) -> None:
        """The program ends: a fetch is halted, and goes on another time."""
        self._fetch.halt()

    # ------------------------------------------------------------------------------ what there is

    def progress(self) -> Mapping[str, object]:
        return {"fetch": asdict(self._fetch.state), "switch": asdict(self._choices.state)}

    def overview(self) -> Mapping[str, object]:
        running = self._runs_now()
        path, found = running.path, self._found()
        here = [self._here_json(model, path) for model in found]
        current = next((one["name"] for one in here if one["answers"]), running.config.llm or (path and path.name))
        look = known_look(path, running.config.digests) if path is not None else None
        answers = {"name": current, "told": look.trouble if look else ""}
        return {"answers": answers, "here": here, "offers": self._offers()} | dict(self.progress())

    def _found(self) -> list[FoundModel]:
        """The shipped one first, and every other place once."""
        tiny = shipped("llm")
        files = FoundModel(SHIPPED, "part of the program", tiny, (tiny / "model.safetensors").stat().st_size)
        found = {model.path.resolve(): model for model in reversed([files, *known_models(self._first.models)])}
        asked = self._running.path if self._running is not None else None
        if asked is not None and asked.resolve() not in found:
            nbytes = asked.stat().st_size if asked.is_file() else 0
            found[asked.resolve()] = FoundModel(str(asked), FOLDER, asked, nbytes)
        return list(reversed(found.values()))

    def _here_json(self, model: FoundModel, path: Path | None) -> dict[str, object]:
        found = Verdict(model.trouble) if model.trouble else self._verdict(model.path)
        answers = path is not None and path.resolve() == model.path.resolve()
        short = "" if answers or not found.needs_bytes else self._lacks(found.needs_bytes)
        look = known_look(model.path, self._first.digests) if found.needs_bytes else None
        return {
            "name": model.name, "program": model.program, "bytes": model.nbytes, "answers": answers,
            "runs": bool(found.needs_bytes) and not short, "needs_bytes": found.needs_bytes,
            "told": short or (look.trouble if look else "") or ("" if found.needs_bytes else found.told),
        }  # fmt: skip

    def _lacks(self, needs_bytes: int) -> str:
        """Why a model of this size has no room; empty: it has, or nobody knows."""
        freed = self._verdict(path).needs_bytes if (path := self._runs_now().path) is not None else 0
        on_gpu = bool(self._runs_now().profile.gpu_bytes)
        free = (gpu_free_bytes() if on_gpu else memory.available_bytes()) + freed
        if free == freed or needs_bytes <= free:
            return ""
        return f"needs {needs_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free once the present model is gone"

    def _verdict(self, path: Path) -> Verdict:
        """Asked once for a file as it is. A folder that a profile packs into four bits is judged so."""
        four = self._first.llm_dtype == "int4" or (not self._first.llm_dtype and self._profiles.get(path) == "int4")
        seen = path.stat()
        key = (path, seen.st_size, seen.st_mtime_ns)
        if key not in self._verdicts:
            self._verdicts[key] = verdict(path, self._first.max_positions, 4 if four else 8)
        return self._verdicts[key]

    def _offers(self) -> list[dict[str, object]]:
        """One for each repository: the first profile of it that fits, or else its first."""
        gpu, host = gpu_free_bytes(), memory.available_bytes()
        rows: dict[str, Profile] = {}
        for profile in PROFILES.values():
            if profile.llm and not profile.tts:
                known = rows.setdefault(profile.llm, profile)
                if not _fits(known, gpu, host) and _fits(profile, gpu, host):
                    rows[profile.llm] = profile
        return [self._offer_json(profile, _fits(profile, gpu, host)) for profile in rows.values()]

    def _offer_json(self, profile: Profile, fits: bool) -> dict[str, object]:
        folder = model_folder(self._first.models, profile.llm)
        gib = f"{(profile.gpu_bytes or profile.host_bytes) / GIB:.0f} GiB"
        needs = f"{gib} free on a GPU" if profile.gpu_bytes else f"{gib} of free memory"
        return {
            "name": profile.name, "repo": profile.llm, "bytes": round(profile.download_gb * 1e9),
            "licence": profile.licence, "memory": needs,
            "fits": fits, "here": is_present(folder), "begun_bytes": begun_bytes(folder),
            "expect": f"{EXPECT_GPU if profile.gpu_bytes else EXPECT_CPU} {UNTRIED}",
        }  # fmt: skip

    # ---------------------------------------------------------------------------------- what is asked

    def fetch_model(self, name: str, *, accept_licence: bool = False) -> None:
        repo = PROFILES[name].llm if name in PROFILES and PROFILES[name].llm else name
        if "/" not in repo:
            offered = ", ".join(str(one["name"]) for one in self._offers())
            raise PeerError("model_not_found", f"{name[:80]!r} cannot be fetched; choose from {offered}", "model")
        if is_fetched(self._first.models, repo):
            raise PeerError("model_here", f"{repo} is here already", "model")
        self._fetch.begin(repo, accept_licence=accept_licence)

    def pause_fetch(self) -> None:
        self._fetch.pause()

    def cancel_fetch(self) -> None:
        self._fetch.cancel()

    async def switch_to(self, name: str) -> None:
        self._choices.choose(name, await asyncio.to_thread(self._settings_for, name))

    def _settings_for(self, name: str) -> Config:
        """The settings with another language model: voice, ears and all else stay. Raises PeerError."""
        found = self._found()
        named = [model for model in found if name in (model.name, str(model.path))]
        if not named:
            raise PeerError("model_not_found", f"there is no model {name[:80]!r} on this machine", "model")
        here = self._here_json(named[0], self._runs_now().path)
        if here["answers"]:
            raise PeerError("model_answers", f"{name} answers already", "model")
        if not here["runs"]:
            raise PeerError("model_does_not_run", f"{name} {here['told']}", "model")
        running = self._runs_now()
        origins = {**running.config.origins, "llm": "the chosen model", "dtype": "the chosen model"}
        # `auto` would look for the largest again, and might take another voice with it.
        kept = replace(running.config, profile=running.profile.name, origins=origins)
        if named[0].name == SHIPPED:
            own = "" if running.profile.name == TINY else str(named[0].path)
            return replace(kept, llm=own, dtype=_both("float32", running))
        alone = [model.name for model in found].count(named[0].name) == 1 and named[0].program != FOLDER
        llm = named[0].name if alone else str(named[0].path)
        return replace(kept, llm=llm, dtype=self._dtype_for(named[0], running))

    def _dtype_for(self, model: FoundModel, running: Running) -> str:
        """As `dtype` was set at the start; else as its profile has it, or in eight bits if it is large. A GGUF file
        chooses for itself."""
        if self._first.dtype:
            return self._first.dtype
        if model.path.is_file():
            return _both("", running)
        if model.path in self._profiles:
            return _both(self._profiles[model.path], running)
        return _both("float8" if model.nbytes >= SMALL_BYTES else "bfloat16", running)

    def _runs_now(self) -> Running:
        if self._running is None:
            raise SettingError("no model runs yet")
        return self._running


def _both(dtype: str, running: Running) -> str:
    """With the voice's dtype as it is: alone, the language model's might count for both."""
    return f"{dtype},{running.config.tts_dtype or running.profile.voice_dtype}"


def _fits(profile: Profile, gpu_free: int, host_free: int) -> bool:
    return profile.gpu_bytes <= gpu_free if profile.gpu_bytes else profile.host_bytes <= host_free
