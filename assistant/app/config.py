"""Every setting of the process: defaults < file < environment < flags, checked once, each value knowing its origin.

The file is `config.toml` in ASSISTANT_HOME. A variable is named after its setting: ASSISTANT_PORT, ASSISTANT_LLM.
Nothing else reads the environment, and nothing here changes after start.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import platformdirs

from assistant.app.parts import PARTS
from assistant.app.removed import REMOVED
from assistant.base import memory
from assistant.base.errors import SettingError
from assistant.device.memory_plan import GIB

TINY = "tiny"


@dataclass(frozen=True, slots=True)
class Profile:
    """A choice of models. `llm` and `tts` are hub repositories, or "" for the models that are shipped; `dtype` is the
    language model's."""

    name: str
    llm: str
    tts: str
    dtype: str
    gpu_bytes: int
    """Free device memory it needs, weights and caches; 0: it runs on a processor."""
    licence: str = ""
    host_bytes: int = 0
    """On a processor: the free memory that `auto` requires; 0: any amount."""
    download_gb: float = 0.0
    """Size of its repositories, by the published shapes in bfloat16; `assistant pull` prints the exact size first."""
    tts_dtype: str = ""
    """The dtype of a fetched voice; empty: as the language model."""

    @property
    def repositories(self) -> tuple[str, ...]:
        return tuple(repository for repository in (self.llm, self.tts) if repository)

    @property
    def voice_dtype(self) -> str:
        """The shipped voice is small: it stays as it is."""
        return (self.tts_dtype or self.dtype) if self.tts else "float32"


_HIGGS = "bosonai/higgs-audio-v3-tts-4b"
_MIXTURE = "Qwen/Qwen3.6-35B-A3B"
_DESK_LICENCE = "Qwen: Apache-2.0; Higgs: Boson Higgs TTS 3 Research and Non-Commercial License"
# In the order of preference. The larger mind serves a person more than the richer voice, since ears mishear only some 1
# to 3 % of the shipped voice's words; the voice comes next, then more bits. On a GPU the 27B stands above the mixture:
# its makers' and others' tests of tools find it better, and either thinks faster than one speaks. A processor reads 3
# billion weights a token of the mixture, and would read all 27 of the other.
PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(TINY, "", "", "float32", 0, "Apache-2.0"),
        Profile("laptop", "Qwen/Qwen3.5-0.8B", "", "int4", 0, "Apache-2.0", 4 * GIB, 1.8),
        Profile("laptop-2b", "Qwen/Qwen3.5-2B", "", "int4", 0, "Apache-2.0", 8 * GIB, 4.6),
        Profile("laptop-4b", "Qwen/Qwen3.5-4B", "", "int4", 0, "Apache-2.0", 10 * GIB, 9.4),
        Profile("laptop-35b", _MIXTURE, "", "int4", 0, "Apache-2.0", 24 * GIB, 71.9),
        Profile("desk-8", "Qwen/Qwen3.5-4B", "", "int4", 5 * GIB, "Apache-2.0", download_gb=9.4),
        Profile("desk-12", "Qwen/Qwen3.5-4B", _HIGGS, "int4", 9 * GIB, _DESK_LICENCE, download_gb=18.7,
                tts_dtype="float8"),
        Profile("desk-16", "Qwen/Qwen3.5-4B", _HIGGS, "float8", 11 * GIB, _DESK_LICENCE, download_gb=18.7),
        Profile("desk", "Qwen/Qwen3.5-4B", _HIGGS, "bfloat16", 21 * GIB,
                _DESK_LICENCE, download_gb=18.7),
        Profile("mind-9b", "Qwen/Qwen3.5-9B", "", "int4", 8 * GIB, "Apache-2.0", download_gb=19.3),
        Profile("desk-9b", "Qwen/Qwen3.5-9B", _HIGGS, "int4", 12 * GIB, _DESK_LICENCE, download_gb=28.6,
                tts_dtype="float8"),
        Profile("mind-35b", _MIXTURE, "", "int4", 21 * GIB, "Apache-2.0", download_gb=71.9),
        Profile("mind-27b", "Qwen/Qwen3.8-27B", "", "int4", 19 * GIB, "Apache-2.0", download_gb=55.6),
        Profile("desk-27b", "Qwen/Qwen3.8-27B", _HIGGS, "int4", 23 * GIB, _DESK_LICENCE, download_gb=64.9,
                tts_dtype="float8"),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Config:
    """`origins` has, for each setting that is not a default, where it came from."""

    home: Path
    profile: str = "auto"
    llm: str = ""
    """A directory, or the URL of a server that speaks chat completions; empty: the profile's."""
    tts: str = ""
    """A directory, or the URL of a server that speaks audio speech; empty: the profile's."""
    asr: str = "auto"
    """The ears: moonshine, pocketsphinx, the folder of a model, or the URL of a server that speaks audio
    transcriptions; auto: the best on this machine that keep up."""
    device: str = "auto"
    llm_device: str = "auto"
    """The language model's own, before `device`; auto: as `device` and the profile have it."""
    tts_device: str = "auto"
    """The voice's."""
    dtype: str = ""
    """One for both models, or two joined by a comma: the language model's, then the voice's; empty: the profile's.

    float8, int8 and int4 are bfloat16 with matrices packed while they are loaded, into eight or four bits; a model that
    was published packed stays so on a GPU. float8 on a processor means int8 for a language model; int8 is for a
    processor. int8 and int4 leave the voice as the profile has it, unless they are given as the second."""
    without: tuple[str, ...] = ()
    """Parts that are left out: see `PARTS`."""
    persona: str = "ada"
    language: str = ""
    """The code of the language of every talk, such as de; empty: each persona's own."""
    voice: str = ""
    first_chunk: str = "exact"
    max_positions: int = 4096
    sessions: int = 4
    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    allow: tuple[str, ...] = ()
    """Further names of this server, and addresses (http…) of pages from elsewhere that may connect."""
    capsule_mb: int = 3584
    """Room for frozen model states, shared among GPU, memory and disk by the memory plan; 0: none is kept."""
    sleep_after: int = 0
    """Minutes without work until the models sleep by themselves: their memory is free, the first answer comes later; 0:
    never."""
    threads: int = 0
    """Processor threads for the models; 0: one for the tiny models, for others what the library takes."""
    origins: Mapping[str, str] = field(default_factory=dict, hash=False)

    def uses(self, part: str) -> bool:
        """Whether one of `PARTS` is wanted."""
        return part not in self.without

    @property
    def llm_dtype(self) -> str:
        """The language model's own; empty: the profile's."""
        return self.dtype.partition(",")[0].strip()

    @property
    def tts_dtype(self) -> str:
        """The voice's own; empty: as `dtype` and the profile have it."""
        return self.dtype.partition(",")[2].strip()

    @property
    def eyes(self) -> str:
        """auto: a language model is loaded with its eyes, if its files have any; off: without."""
        return "auto" if self.uses("vision") else "off"

    @property
    def kernels(self) -> str:
        """auto: C++ kernels, compiled once, where that can be done; torch: torch's own operators."""
        return "auto" if self.uses("kernels") else "torch"

    @property
    def untried(self) -> bool:
        """Whether a GPU takes every new kernel, see `capsules.exec.switches`, or only those that a card has proven."""
        return not self.uses("caution")

    @property
    def models(self) -> Path:
        return self.home / "models"

    @property
    def capsules(self) -> Path:
        return self.home / "capsules"

    @property
    def voices(self) -> Path:
        """The folder of voices that were designed, or given by their owners."""
        return self.home / "voices"

    @property
    def digests(self) -> Path:
        """The folder for digests of weights whose own folder cannot be written."""
        return self.home / "digests"

    @property
    def talks(self) -> Path:
        return self.home / "talks"

    @property
    def compiled(self) -> Path:
        """The folder of C++ kernels: they are this machine's, whatever the home."""
        return platformdirs.user_cache_path("assistant", appauthor=False) / "kernels"

    @property
    def recordings(self) -> Path:
        """The folder of recorded steps, which are made again whenever code, model or machine change."""
        return platformdirs.user_cache_path("assistant", appauthor=False) / "recordings"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def origin(self, name: str) -> str:
        """The place that a setting came from, in words."""
        return self.origins.get(name, "default")


_SETTINGS = {f.name: f for f in fields(Config) if f.name not in ("home", "origins")}
_BOUNDS: dict[str, tuple[int, int | None]] = {
    "max_positions": (256, None), "sessions": (1, None), "port": (0, 65_535), "threads": (0, 1024),
    "sleep_after": (0, 525_600), "capsule_mb": (0, None),
}  # fmt: skip
DTYPES = ("float32", "bfloat16", "float8", "int8", "int4")
_CHOICES: dict[str, Sequence[str]] = {
    "profile": ("auto", *PROFILES),
    **dict.fromkeys(("device", "llm_device", "tts_device"), ("auto", "cpu", "cuda")),
    "first_chunk": ("exact", "fast"),
    "without": tuple(PARTS),
}


def load_config(
    flags: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> Config:
    """All settings. Flags that are None were not given. Raises SettingError naming the setting and its origin."""
    env = os.environ if environment is None else environment
    home = Path(env.get("ASSISTANT_HOME") or platformdirs.user_data_dir("assistant", appauthor=False)).expanduser()
    config = Config(home)
    path = home / "config.toml"
    if path.is_file():
        for name, value in _read(path).items():
            config = _with(config, name, value, f"{path}: {name}", str(path))
    for name in (*_SETTINGS, *REMOVED):
        variable = f"ASSISTANT_{name.upper()}"
        if variable in env:
            config = _with(config, name, env[variable], variable, f"environment variable {variable}")
    for name, value in (flags or {}).items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            config = _with(config, name, value, flag, flag)
    return config


def choose_profile(
    wanted: str, gpu_free_bytes: int, present: Sequence[str], host_free_bytes: int | None = None
) -> Profile:
    """The profile to run. `present`: names of profiles whose models are on this machine.

    "auto" takes the last of the table that is present and fits the GPU, else the last that fits the processor's memory,
    else the shipped models.

    host_free_bytes  what a processor's models may take; None: measured where it matters
    """
    if wanted != "auto":
        return PROFILES[wanted]
    here = [PROFILES[name] for name in present]
    on_gpu = [profile for profile in here if 0 < profile.gpu_bytes <= gpu_free_bytes]
    if on_gpu:
        return max(on_gpu, key=_rank)
    free = memory.available_bytes() if host_free_bytes is None else host_free_bytes
    fitting = [profile for profile in here if 0 < profile.host_bytes <= free]
    return max(fitting, key=_rank, default=PROFILES[TINY])


def reason(
    profile: Profile, present: Sequence[str], gpu_free_bytes: int, host_free_bytes: int | None = None
) -> str:
    """Why `choose_profile` took this one by itself, with what was measured and what the next better would need; empty
    where nothing else is here."""
    free = memory.available_bytes() if host_free_bytes is None else host_free_bytes
    on_gpu = bool(profile.gpu_bytes)
    better = [one for one in PROFILES.values() if one.name in present and is_larger(one, profile)]
    gpu = [one for one in better if one.gpu_bytes > gpu_free_bytes] if gpu_free_bytes else []
    host = [] if on_gpu else [one for one in better if one.host_bytes > free]
    larger = [
        *(f"{one.name} needs {one.gpu_bytes >> 30} GiB free on the GPU" for one in gpu[:1]),
        *(f"{one.name} needs {one.host_bytes >> 30} GiB free" for one in host[:1]),
    ]
    measured = ([f"{gpu_free_bytes / GIB:.1f} GiB free on the GPU"] if gpu_free_bytes else []) + (
        [] if on_gpu else [f"{free / GIB:.1f} GiB free in memory"]
    )
    if not present:
        return ""
    own = f", of which it needs {_needs(profile) >> 30}" if profile.llm else ""
    return f"profile {profile.name}: {' and '.join(measured)}{own}" + "".join(f"; {line}" for line in larger)


def _needs(profile: Profile) -> int:
    return profile.gpu_bytes or profile.host_bytes


def certain_profile(config: Config, present: Sequence[str]) -> Profile | None:
    """The profile that will run whatever GPU there is, or None where that decides. `present` as in `choose_profile`."""
    if config.profile != "auto":
        return PROFILES[config.profile]
    return None if present else PROFILES[TINY]


def offer(gpu_free_bytes: int, host_free_bytes: int | None = None) -> Profile:
    """The best profile for this machine if everything were downloaded: `assistant pull` marks it, and the page and
    `assistant doctor` advise it. Arguments as in `choose_profile`."""
    return choose_profile("auto", gpu_free_bytes, list(PROFILES), host_free_bytes)


def is_larger(one: Profile, other: Profile) -> bool:
    """Whether it serves a person better."""
    return _rank(one) > _rank(other)


def _rank(profile: Profile) -> int:
    return list(PROFILES).index(profile.name)


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingError(f"{path} cannot be read: {error}") from error


def _with(config: Config, name: str, value: object, written: str, origin: str) -> Config:
    """`written`: the setting as its user wrote it, for a refusal."""
    if name in REMOVED:
        raise SettingError(f"{written} was removed; {REMOVED[name]}")
    if name not in _SETTINGS:
        near = get_close_matches(name, _SETTINGS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(_SETTINGS)}"
        raise SettingError(f"{written} is not a setting; {hint}")
    checked = _checked(name, value, getattr(config, name), written)
    return replace(config, **{name: checked}, origins={**config.origins, name: origin})


def _checked(name: str, value: object, like: object, written: str) -> Any:
    """The value in the setting's type; numbers and lists may come as text."""
    if isinstance(like, int):
        return _number(value, *_BOUNDS[name], written)
    if isinstance(like, tuple):
        rows = value.split(",") if isinstance(value, str) else value
        if not isinstance(rows, list | tuple) or not all(isinstance(row, str) for row in rows):
            _refuse(value, "a list of texts", written)
        found = tuple(row.strip() for row in rows if row.strip())
        for row in found if name in _CHOICES else ():
            _choose(row, _CHOICES[name], written)
        return found
    if not isinstance(value, str | Path):
        _refuse(value, "text", written)
    text = str(value)
    if name == "dtype" and text:
        first, *more = (part.strip() for part in text.split(","))
        if first not in DTYPES or len(more) > 1 or not set(more) <= set(DTYPES):
            _refuse(value, f"one of {', '.join(DTYPES)}, or two of them joined by a comma (the second for the voice)",
                    written)  # fmt: skip
    elif name in _CHOICES:
        _choose(text, _CHOICES[name], written)
    return text


def _number(value: object, least: int, most: int | None, written: str) -> int:
    text = str(value).strip()
    readable = not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) <= 9
    if not readable or int(text) < least or (most is not None and int(text) > most):
        limits = f"of {least} or more" if most is None else f"from {least} to {most}"
        _refuse(value, f"a whole number {limits}", written)
    return int(text)


def _choose(text: str, choices: Sequence[str], written: str) -> None:
    if text not in choices:
        _refuse(text, f"one of {', '.join(choices)}", written)


def _refuse(value: object, allowed: str, written: str) -> NoReturn:
    raise SettingError(f"{written} must be {allowed}, not {value!r}")
