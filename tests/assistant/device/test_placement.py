"""Where each model runs: the settings, the profile, the machine, in this order."""

import pytest

from assistant.device.placement import Asked, place


@pytest.mark.parametrize(
    ("asked", "gpu", "wants_gpu", "large_voice", "llm", "tts"),
    [
        (Asked(), False, False, False, "cpu", "cpu"),
        (Asked(), True, False, False, "cpu", "cpu"),  # a profile for a processor stays there
        (Asked(), True, True, True, "cuda", "cuda"),
        (Asked(), True, True, False, "cuda", "cpu"),  # the shipped voice beside a large language model
        (Asked(), False, True, True, "cpu", "cpu"),
        (Asked("cuda"), True, False, False, "cuda", "cuda"),
        (Asked("cuda"), False, True, True, "cuda", "cuda"),  # asked for: refused where there is none, not moved
        (Asked("cpu"), True, True, True, "cpu", "cpu"),
        (Asked(llm="cpu"), True, True, True, "cpu", "cuda"),
        (Asked(tts="cpu"), True, True, True, "cuda", "cpu"),
        (Asked("cpu", tts="cuda"), True, True, True, "cpu", "cuda"),
        (Asked("cuda", "cpu"), True, True, True, "cpu", "cuda"),
        (Asked(llm="cuda"), True, False, False, "cuda", "cpu"),
    ],
)
def test_who_runs_where(asked: Asked, gpu: bool, wants_gpu: bool, large_voice: bool, llm: str, tts: str) -> None:
    placed = place(asked, gpu=gpu, wants_gpu=wants_gpu, large_voice=large_voice)
    assert (placed.llm, placed.tts) == (llm, tts)
    assert placed.devices == ((llm,) if llm == tts else (llm, tts))
