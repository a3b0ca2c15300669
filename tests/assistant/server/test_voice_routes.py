"""`/v1/audio/voices`: a recording becomes a voice that every front sees at once, and is refused in words."""

import io

import aiohttp
import pytest

from assistant.app.voices import KeptVoices
from assistant.tts.voice_folder import VoiceFolder
from tests.fakes.recordings import hostile, recorded
from tests.fakes.talk import PERSONAS
from tests.fakes.web import run
from tests.tts_engine.miniature import write_miniature

SAID = "This is how I speak."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_miniature(tmp_path_factory.mktemp("model") / "mini")


def told(site, method, sound=None, name="", status=200, headers=None, query="", **fields):
    """Ask, and read the answer's JSON."""

    async def ask():
        form = None
        if sound is not None:
            form = aiohttp.FormData()
            form.add_field("audio_sample", io.BytesIO(sound), filename="r.wav")
            for field, value in ({"name": name, "consent": "true"} | fields).items():
                form.add_field(field, value)
        path = f"/{name}{query}" if method == "DELETE" else ""
        url = f"{site.http}/v1/audio/voices{path}"
        async with site.client.request(method, url, data=form, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    return ask()


def test_a_recording_becomes_a_voice_and_goes_again(model, tmp_path):
    recording = recorded(tmp_path / "r.wav").read_bytes()

    async def story(site):
        asr = site.world.asr
        folder = VoiceFolder(model, tmp_path / "voices")
        site.context.voices = KeptVoices(folder, PERSONAS, lambda: asr, lambda: ["mine"])
        assert await told(site, "GET") == {"object": "list", "data": [], "refusal": None}
        made = await told(site, "POST", recording, "mine", transcript=SAID)
        assert (made["id"], made["origin"], made["transcript"], made["seconds"]) == ("mine", "given", SAID, 5.0)
        assert (await told(site, "GET"))["data"] == [made]
        again = await told(site, "POST", recording, "mine", status=409, transcript=SAID)
        assert again["error"]["code"] == "voice_exists"
        await told(site, "POST", recording, "mine", transcript=SAID, replace="true")
        used = await told(site, "DELETE", name="mine", status=409)
        assert "mine is in use by a talk that is open" in used["error"]["message"]
        assert (await told(site, "DELETE", name="nobody", status=404))["error"]["code"] == "voice_not_found"
        assert (await told(site, "DELETE", name="mine", query="?anyway=true"))["deleted"] is True
        assert (await told(site, "GET"))["data"] == []

    run(story)


def test_what_is_no_voice_is_refused_in_words_and_disturbs_nothing(model, tmp_path):
    recording = recorded(tmp_path / "r.wav").read_bytes()
    bad = {what: one for what, one in hostile(tmp_path).items() if what != "huge file"}

    async def story(site):
        site.context.voices = KeptVoices(VoiceFolder(model, tmp_path / "voices"), {}, lambda: site.world.asr)
        for what, (path, said) in bad.items():
            answer = await told(site, "POST", path.read_bytes(), "mine", status=400, transcript=SAID)
            assert said in answer["error"]["message"], what
        for fields, param in (({"consent": "no"}, "consent"), ({"name": "../x"}, "name")):
            answer = await told(site, "POST", recording, status=400, transcript=SAID, **({"name": "mine"} | fields))
            assert answer["error"]["param"] == param
        large = bytes(65 << 20)
        assert "too large" in (await told(site, "POST", large, "mine", status=400))["error"]["message"]
        elsewhere = {"Origin": "http://127.0.0.1:1"}
        await told(site, "POST", recording, "mine", status=403, headers=elsewhere, transcript=SAID)
        await told(site, "GET", status=403, headers=elsewhere)
        assert not (tmp_path / "voices").exists()
        site.context.voices = None
        assert (await told(site, "GET", status=501))["error"]["code"] == "voices_off"

    run(story)
