"""Both models in one talk, each on a device of its own: on a GPU and a processor, or on two contexts of this one."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from assistant.app.config import load_config
from assistant.app.start import open_talks
from assistant.contracts import Prompt, ReplyOptions, TextPiece
from assistant.device.execution import open_context
from capsules import ExecContext

pytestmark = pytest.mark.slow


async def reply_of(folder: Path, **flags: str) -> tuple[str, int, dict[str, ExecContext], list[str], str]:
    """What was said, how many samples, the contexts, what was told, and the metrics."""
    told: list[str] = []
    config = load_config({"profile": "tiny", "asr": "pocketsphinx", **flags}, {"ASSISTANT_HOME": str(folder)})
    async with open_talks(config, told.append) as app:
        llm, tts = app.models.llm, app.models.tts
        async with aclosing(llm.reply("a", Prompt("", ()), ReplyOptions("a.0", 12))) as pieces:
            said = "".join([piece.text async for piece in pieces if isinstance(piece, TextPiece)])
        async with aclosing(tts.speak("a", "ada", "a.0", "Hello there.")) as sounds:
            count = sum([sound.pcm.size async for sound in sounds])  # in chunks cut by how fast this machine is now
        return said, count, app.models.contexts, [*told, str(app.facts["device"])], app.metrics().decode()


@pytest.mark.parametrize(("llm", "tts"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_each_model_has_its_own_context_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llm: str, tts: str
) -> None:
    """The second device is a fake: another context of this processor."""
    together = asyncio.run(reply_of(tmp_path / "one"))

    def fake(device: str, *rest: object) -> ExecContext:
        return open_context("cpu", *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("assistant.app.models.open_context", fake)
    monkeypatch.setattr("assistant.app.models.gpu_free_bytes", lambda: 16 << 30)
    apart = asyncio.run(reply_of(tmp_path / "two", llm_device=llm, tts_device=tts))
    assert together[:2] == apart[:2] and together[1] > 0
    one, two = apart[2]["llm"], apart[2]["tts"]
    assert one is not two and together[2]["llm"] is together[2]["tts"]
    assert one.buffers("llm") and not one.buffers("tts") and two.buffers("tts") and not two.buffers("llm")
    assert any("are free on the GPU; needed" in line for line in apart[3]) and "voice" in apart[3][-1]
    assert 'device="' in apart[4] and 'device="' not in together[4]


@pytest.mark.gpu
@pytest.mark.parametrize(("llm", "tts"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_a_gpu_and_a_processor_share_a_talk(tmp_path: Path, llm: str, tts: str) -> None:
    said, count, contexts, _, _ = asyncio.run(reply_of(tmp_path, llm_device=llm, tts_device=tts))
    assert said and count and [contexts[name].device.type for name in ("llm", "tts")] == [llm, tts]
