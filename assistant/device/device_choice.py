"""Chooses the device that each model runs on: the requested one, else by the profile and the machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass

CPU, CUDA, AUTO = "cpu", "cuda", "auto"


@dataclass(frozen=True, slots=True)
class AskedDevices:
    """The settings: `both` is --device, and the others override it."""

    both: str = AUTO
    llm: str = AUTO
    tts: str = AUTO


@dataclass(frozen=True, slots=True)
class Placement:
    """The devices of the language model and of the voice."""

    llm: str
    tts: str

    @property
    def devices(self) -> tuple[str, ...]:
        """Each device once, the language model's first."""
        return tuple(dict.fromkeys((self.llm, self.tts)))


def place(asked: AskedDevices, *, gpu: bool, wants_gpu: bool, large_voice: bool) -> Placement:
    """Decide where both models go.

    gpu          whether there is a usable one
    wants_gpu    whether the profile's language model is meant for a GPU
    large_voice  whether the profile's voice is; the shipped voice keeps up anywhere and leaves a GPU's memory to others
    """
    by_profile = CUDA if gpu and wants_gpu else CPU
    beside = by_profile if large_voice else CPU
    return Placement(_first(asked.llm, asked.both, by_profile), _first(asked.tts, asked.both, beside))


def _first(*wishes: str) -> str:
    return next(wish for wish in wishes if wish != AUTO)
