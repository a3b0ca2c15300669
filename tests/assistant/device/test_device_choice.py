"""Where each model runs: the settings, the profile, the machine, in this order."""

import pytest

from assistant.device.device_choice import AskedDevices, place


@pytest.mark.parametrize(
    ("asked", "gpu", "wants_gpu", "large_voice", "llm", "tts"),
    [
        (AskedDevices(), False, False, False, "cpu", "cpu"),
        (AskedDevices(), True, False, False, "cpu", "cpu"),  # a profile for a processor stays there
        (AskedDevices(), True, True, True, "cuda", "cuda"),
        (AskedDevices(), True, True, False, "cuda", "cpu"),  # the shipped voice beside a large language model
        (AskedDevices(), False, True, True, "cpu", "cpu"),
        (AskedDevices("cuda"), True, False, False, "cuda", "cuda"),
        (AskedDevices("cuda"), False, True, True, "cuda", "cuda"),  # asked for: refused where there is none, not moved
        (AskedDevices("cpu"), True, True, True, "cpu", "cpu"),
        (AskedDevices(llm="cpu"), True, True, True, "cpu", "cuda"),
        (AskedDevices(tts="cpu"), True, True, True, "cuda", "cpu"),
        (AskedDevices("cpu", tts="cuda"), True, True, True, "cpu", "cuda"),
        (AskedDevices("cuda", "cpu"), True, True, True, "cpu", "cuda"),
        (AskedDevices(llm="cuda"), True, False, False, "cuda", "cpu"),
    ],
)
def test_who_runs_where(asked: AskedDevices, gpu: bool, wants_gpu: bool, large_voice: bool, llm: str, tts: str) -> None:
    placed = place(asked, gpu=gpu, wants_gpu=wants_gpu, large_voice=large_voice)
    assert (placed.llm, placed.tts) == (llm, tts)
    assert placed.devices == ((llm,) if llm == tts else (llm, tts))
