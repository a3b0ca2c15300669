"""What is known of models, and refused, before anything is loaded."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from assistant.app.config import PROFILES, load_config
from assistant.app.ears import limited
from assistant.app.models import _gpu_room, voice_dtype
from assistant.app.places import shipped
from assistant.base.errors import SettingError


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_packing_for_a_processor_is_refused_on_a_gpu(dtype: str) -> None:
    context: Any = SimpleNamespace(device=torch.device("cuda"))
    for name in ("dtype", "tts_dtype"):
        with pytest.raises(SettingError, match=f"^{name} {dtype} .*--device cpu"):
            _gpu_room(load_config({name: dtype}, {}), PROFILES["desk"], context, print)


def test_the_voice_has_a_dtype_of_its_own() -> None:
    def chosen(profile: str, **flags: str) -> str:
        return voice_dtype(load_config(flags, {}), PROFILES[profile])

    assert [chosen("laptop"), chosen("laptop", dtype="int8"), chosen("desk", dtype="int8")] == [
        "float32", "float32", "bfloat16",
    ]  # fmt: skip
    assert [chosen("tiny", dtype="bfloat16"), chosen("laptop", dtype="int8", tts_dtype="int4")] == ["bfloat16", "int4"]
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
