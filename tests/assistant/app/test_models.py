"""What is known of models, and refused, before anything is loaded."""

from pathlib import Path

import pytest
import torch

from assistant.app.config import PROFILES, load_config
from assistant.app.models import (
    MIB,
    ON_GPU,
    PARTS,
    capsule_budgets,
    llm_dtype,
    memory_for_capsules,
    pace_of,
    placement,
    voice_dtype,
)
from assistant.app.places import shipped
from assistant.base.errors import SettingError
from assistant.device.deployment import Deployment
from assistant.device.lease import RETURNING
from assistant.device.thread import EngineThread
from assistant.llm.small import WORDS, SmallMind, small_mind
from capsules import ExecContext, Role
from capsules.registry import Budgets, Registry


def test_eight_bits_are_those_that_the_device_reads() -> None:
    with pytest.raises(SettingError, match=r"--dtype: int8 .*use float8, or use --device cpu"):
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
        assert placement(load_config(flags, {}), PROFILES["desk-8"], gpu=True).devices == devices


def test_the_voice_has_a_dtype_of_its_own() -> None:
    def chosen(profile: str, device: str = "cpu", **flags: str) -> str:
        return voice_dtype(load_config(flags, {}), PROFILES[profile], device)

    assert [chosen("laptop"), chosen("laptop", dtype="int8"), chosen("desk", dtype="int8")] == [
        "float32", "float32", "bfloat16",
    ]  # fmt: skip
    assert [chosen("tiny", dtype="bfloat16"), chosen("laptop", dtype="int8,int4")] == ["bfloat16", "int4"]
    assert chosen("desk", "cuda", dtype="bfloat16,int4") == "int4"
    with pytest.raises(SettingError, match=r"--dtype: int8 packs the voice .*--device cpu"):
        chosen("desk", "cuda", dtype="bfloat16,int8")
    with pytest.raises(SettingError, match=r"--dtype .*int4"):
        load_config({"dtype": "int4,int2"}, {})


def test_the_voices_pace_is_said_in_a_persons_terms() -> None:
    assert pace_of(1.25) == "the voice is made 32 times as fast as it plays"
    assert pace_of(50).startswith("the voice is made 0.8 times as fast as it plays, so replies will have gaps")


def test_capsules_share_one_budget() -> None:
    total = load_config({}, {}).capsule_mb * MIB
    for room in (0, 300 * MIB, total * ON_GPU // PARTS):
        budgets = capsule_budgets(total, room)
        assert (budgets.gpu_bytes, budgets.host_bytes) == (room, 512 * MIB)
        assert budgets.gpu_bytes + budgets.host_bytes + budgets.disk_bytes == total
    assert (total * ON_GPU // PARTS, budgets.disk_bytes) == (1024 * MIB, 2048 * MIB), "with all that a GPU may have"
    nothing = capsule_budgets(0, 0)
    assert (nothing.gpu_bytes, nothing.host_bytes, nothing.disk_bytes) == (0, 0, 0)


def test_memory_for_capsules_follows_machine_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit(machine_gib: float, state_mib: int, sessions: int = 4) -> int:
        ctx = ExecContext("cpu")
        ctx.buffer("toy.kv", [state_mib * MIB], torch.uint8, role=Role.STATE)
        ctx.buffer("toy.w", [64 * MIB], torch.uint8, role=Role.WEIGHT)
        registry = Registry.standard(ctx, Budgets(host_bytes=512 * MIB), lambda: 0.0)
        registry.charge("checkpoints", 2 * MIB)
        monkeypatch.setattr("assistant.base.memory.machine_bytes", lambda: int(machine_gib * 1024 * MIB))
        return memory_for_capsules(Deployment(ctx, EngineThread(), registry), 512 * MIB, sessions) // MIB

    assert limit(64, 1) == 2 + 4 + RETURNING and limit(64, 1, sessions=20) == 2 + 20 + RETURNING
    assert limit(64, 100) == 512, "never more than the setting gives"
    assert limit(2, 100) == 128, "a small machine has other uses for its memory"
    assert limit(0, 100) == 512, "not every system reports its memory"


def test_a_model_of_the_shipped_ones_recipe_is_known_by_the_words_beside_it(tmp_path: Path) -> None:
    assert small_mind(shipped("llm")) == SmallMind(shipped("llm"))
    assert small_mind(tmp_path) is None and small_mind(Path("http://127.0.0.1:8000/v1")) is None
    (tmp_path / WORDS).write_text("hello\n")
    assert small_mind(tmp_path) == SmallMind(tmp_path)
