"""Settings: who wins over whom, refusals with their origin, and a profile for each machine."""

import argparse
import re
from dataclasses import fields

import pytest

from assistant.app.config import PROFILES, Config, choose_profile, is_larger, load_config, offer, reason
from assistant.app.parts import PARTS
from assistant.app.removed import REMOVED
from assistant.base.errors import SettingError
from assistant.base.memory import available_bytes
from assistant.commands._front import add_model_arguments, model_flags


def test_flags_win_over_environment_over_file_over_defaults(tmp_path):
    (tmp_path / "config.toml").write_text('port = 1\nsessions = 2\nhost = "h"\n')
    config = load_config({"port": 3, "host": None}, {"ASSISTANT_HOME": str(tmp_path), "ASSISTANT_PORT": "2",
                                                     "ASSISTANT_SESSIONS": "7"})  # fmt: skip
    assert (config.port, config.sessions, config.host, config.persona) == (3, 7, "h", "ada")
    assert config.origin("port") == "--port" and config.origin("persona") == "default"
    assert config.origin("sessions") == "environment variable ASSISTANT_SESSIONS"
    assert config.origin("host") == str(tmp_path / "config.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [("port = true", "port must be a whole number"), ("sessions = 0", "sessions must be a whole number of 1 or more"),
     ("port = 65536", "port must be a whole number from 0 to 65535, not 65536"),
     ("threads = -1", "from 0 to 1024, not -1"), ('profile = "huge"', "profile must be one of auto, tiny"),
     ("prot = 1", "prot is not a setting; did you mean port?"), ("zzz = 1", "not a setting; there is profile, llm"),
     ('without = "eyes"', "without must be one of vision, candidates, echo, kernels, caution, not 'eyes'"),
     ("port = [", "cannot be read")],
)  # fmt: skip
def test_wrong_settings_are_refused_with_their_origin(tmp_path, text, words):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(SettingError, match=words) as raised:
        load_config({}, {"ASSISTANT_HOME": str(tmp_path)})
    assert "config.toml" in str(raised.value)


def test_profiles_follow_what_the_machine_has():
    gib = 1 << 30
    assert choose_profile("auto", 0, ()).name == "tiny"
    assert choose_profile("auto", 22 * gib, ("desk-9b", "mind-27b", "desk-27b")).name == "mind-27b"
    assert choose_profile("auto", 48 * gib, ()).name == "tiny"
    assert choose_profile("desk", 0, ()).name == "desk"
    assert Config.__dataclass_params__.frozen
    both = ("laptop", "laptop-2b")
    free = [choose_profile("auto", 0, both, memory * gib).name for memory in (3, 4, 7, 8)]
    assert free == ["tiny", "laptop", "laptop", "laptop-2b"]
    assert choose_profile("auto", 21 * gib, ("laptop-2b", "desk"), 99 * gib).name == "desk", "a GPU goes first"
    assert choose_profile("auto", 20 * gib, ("laptop-2b", "desk"), 99 * gib).name == "laptop-2b"
    for gib_free, name in ((19, "mind-27b"), (21, "mind-27b"), (12, "desk-9b"), (10, "mind-9b"), (8, "mind-9b")):
        here = ("desk-12", "desk", "desk-9b", "mind-9b", "mind-35b", "mind-27b")
        assert choose_profile("auto", gib_free * gib, here, 0).name == name, "the larger mind, then its own voice"
    assert choose_profile("auto", 22 * gib, ("desk", "laptop-35b", "mind-35b"), 99 * gib).name == "mind-35b"
    assert choose_profile("auto", 0, ("laptop-4b", "laptop-35b", "mind-35b"), 26 * gib).name == "laptop-35b"


def test_the_best_for_a_machine_is_offered_whatever_is_downloaded():
    gib = 1 << 30
    machines = [(0, 3), (0, 4), (0, 8), (0, 10), (4, 8), (5, 8), (8, 8), (14, 3), (22, 3), (48, 3), (0, 26)]
    offered = [offer(gpu * gib, host * gib) for gpu, host in machines]
    assert [profile.name for profile in offered] == [
        "tiny", "laptop", "laptop-2b", "laptop-4b", "laptop-2b", "desk-8", "mind-9b", "desk-9b", "mind-27b", "desk-27b",
        "laptop-35b",
    ]  # fmt: skip
    assert is_larger(PROFILES["desk-8"], PROFILES["laptop-2b"]) and is_larger(PROFILES["laptop"], PROFILES["tiny"])
    assert not is_larger(PROFILES["laptop"], PROFILES["laptop-2b"]), "after laptop-2b was loaded, less memory is free"
    assert not is_larger(PROFILES["desk"], PROFILES["desk"])
    for repository in {profile.llm for profile in PROFILES.values()}:
        needed = [(one.gpu_bytes, one.host_bytes) for one in PROFILES.values() if one.llm == repository]
        assert needed == sorted(needed), "of one model, more memory is better"


def test_a_card_takes_the_largest_that_fits_and_says_why():
    gib, present = 1 << 30, ("laptop", "desk-8", "desk-12", "desk-16", "desk")

    def told(gpu_gib, host_gib=3, here=present):
        gpu, host = int(gpu_gib * gib), int(host_gib * gib)
        return reason(choose_profile("auto", gpu, here, host), here, gpu, host)

    assert told(7.4) == (
        "profile desk-8: 7.4 GiB free on the GPU, of which it needs 5; desk-12 needs 9 GiB free on the GPU"
    )
    # cards of 8, 12 and 16 GB, less the process's own context and a screen
    taken = [choose_profile("auto", int(free * gib), present, 0).name for free in (6.5, 10.5, 14.5)]
    assert taken == ["desk-8", "desk-12", "desk-16"]
    assert told(10.5).startswith("profile desk-12: 10.5 GiB") and told(15.5).startswith("profile desk-16: 15.5 GiB")
    assert told(22) == "profile desk: 22.0 GiB free on the GPU, of which it needs 21"
    assert told(4.5, 6) == (
        "profile laptop: 4.5 GiB free on the GPU and 6.0 GiB free in memory, of which it needs 4; desk-8 needs 5 GiB "
        "free on the GPU"
    )
    assert told(0) == "profile tiny: 3.0 GiB free in memory; laptop needs 4 GiB free" and told(0, here=()) == ""


def test_free_memory_is_what_the_system_tells(tmp_path):
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:  24000 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n")
    assert available_bytes(told) == 2 << 20
    assert available_bytes(tmp_path / "none") == 0
    told.write_text("MemAvailable: plenty\n")
    assert available_bytes(told) == 0


def test_a_laptops_voice_stays_as_it_is_shipped():
    laptop, desk = PROFILES["laptop"], PROFILES["desk"]
    assert (laptop.dtype, laptop.voice_dtype, desk.voice_dtype) == ("int4", "float32", "bfloat16")
    assert laptop.repositories == ("Qwen/Qwen3.5-0.8B",)


def test_parts_may_be_left_out(tmp_path):
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    environment = {"ASSISTANT_HOME": str(tmp_path)}
    whole = load_config(model_flags(parser.parse_args([])), environment)
    assert all(whole.uses(part) for part in PARTS) and (whole.eyes, whole.kernels) == ("auto", "auto")
    some = load_config(model_flags(parser.parse_args(["--without", "vision, echo"])), environment)
    assert [part for part in PARTS if some.uses(part)] == ["candidates", "kernels", "caution"]
    assert (some.eyes, some.kernels) == ("off", "auto")
    assert load_config({}, environment | {"ASSISTANT_WITHOUT": "kernels"}).kernels == "torch"


def test_one_dtype_is_for_both_models_and_a_second_for_the_voice():
    both, each, none = (load_config({"dtype": text}, {}) for text in ("int8", "int4, float8", ""))
    found = [(one.llm_dtype, one.tts_dtype) for one in (both, each, none)]
    assert found == [("int8", ""), ("int4", "float8"), ("", "")]
    for text in ("fp16", "int4,", "int4,int4,int4", ",int4"):
        with pytest.raises(SettingError, match=r"--dtype must be one of float32, .*or two of them") as refused:
            load_config({"dtype": text}, {})
        assert "''" not in str(refused.value)


@pytest.mark.parametrize("name", [name for name in REMOVED if not name.startswith("--")])
def test_a_removed_setting_is_refused_with_its_replacement_wherever_it_stands(tmp_path, name):
    home = {"ASSISTANT_HOME": str(tmp_path)}
    with pytest.raises(SettingError, match=re.escape(f"ASSISTANT_{name.upper()} was removed; {REMOVED[name]}")):
        load_config({}, home | {f"ASSISTANT_{name.upper()}": "1"})
    (tmp_path / "config.toml").write_text(f"{name} = 1\n")
    with pytest.raises(SettingError, match=re.escape(f"config.toml: {name} was removed; {REMOVED[name]}")):
        load_config({}, home)


def test_replacements_name_what_there_is():
    settings = {field.name for field in fields(Config)}
    assert not settings & REMOVED.keys()
    for advice in REMOVED.values():
        named = set(re.findall(r"--([a-z-]+)", advice))
        assert named or "capsule" in advice or "`assistant pull" in advice or "voice" in advice
        assert {name.replace("-", "_") for name in named} <= settings | {"tls"}
