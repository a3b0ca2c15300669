"""What is known of models, and refused, before anything is loaded."""

from pathlib import Path

import pytest

from assistant.app.config import PROFILES, load_config
from assistant.app.ears import limited
from assistant.app.models import _placement, llm_dtype, voice_dtype
from assistant.app.places import shipped
from assistant.base.errors import SettingError


def test_eight_bits_are_those_that_the_device_reads() -> None:
    with pytest.raises(SettingError, match=r"dtype int8 .*take float8, or --device cpu"):
        llm_dtype("int8", "cuda")
    assert [llm_dtype("float8", device) for device in ("cpu", "cuda")] == ["int8", "float8"]
    assert [llm_dtype("int4", device) for device in ("cpu", "cuda")] == ["int4", "int4"]
    plain, packed = load_config({}, {}), load_config({"dtype": "int4"}, {})
    for config in (plain, packed):
        voice = [voice_dtype(config, PROFILES["desk-12"], device) for device in ("cpu", "cuda")]
        assert voice == ["int8", "float8"]
    assert voice_dtype(plain, PROFILES["desk-8"], "cpu") == "float32", "it is shipped"


def test_a_model_on_a_server_takes_no_device() -> None:
    there = "http://127.0.0.1:8000/v1#m"
    for flags, devices in (
        ({}, ("cuda", "cpu")), ({"llm": there}, ("cpu",)), ({"tts": there}, ("cuda",)),
        ({"llm_device": "cpu"}, ("cpu",)), ({"tts_device": "cuda"}, ("cuda",)), ({"device": "cuda"}, ("cuda",)),
    ):  # fmt: skip
        assert _placement(load_config(flags, {}), PROFILES["desk-8"], gpu=True).devices == devices


def test_the_voice_has_a_dtype_of_its_own() -> None:
    def chosen(profile: str, device: str = "cpu", **flags: str) -> str:
        return voice_dtype(load_config(flags, {}), PROFILES[profile], device)

    assert [chosen("laptop"), chosen("laptop", dtype="int8"), chosen("desk", dtype="int8")] == [
        "float32", "float32", "bfloat16",
    ]  # fmt: skip
    assert [chosen("tiny", dtype="bfloat16"), chosen("laptop", dtype="int8", tts_dtype="int4")] == ["bfloat16", "int4"]
    assert chosen("desk", "cuda", tts_dtype="int4") == "int4"
    with pytest.raises(SettingError, match=r"tts_dtype int8 .*int4 or --device cpu"):
        chosen("desk", "cuda", tts_dtype="int8")
    with pytest.raises(SettingError, match=r"tts_dtype .*int4"):
        load_config({"tts_dtype": "int2"}, {})


def test_a_model_of_the_shipped_ones_recipe_is_known_by_its_words(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    words = tmp_path / "tokenizer.json"
    words.write_bytes((shipped("llm") / "tokenizer.json").read_bytes())
    config, tiny = load_config({"llm": str(tmp_path)}, {}), PROFILES["tiny"]
    assert limited(config, tiny) and limited(load_config({}, {}), tiny)
    words.write_text("{}")
    assert not limited(config, tiny)
    assert not limited(load_config({"llm": "http://127.0.0.1:8000/v1"}, {}), tiny)
