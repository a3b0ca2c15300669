"""Settings: who wins over whom, refusals with their origin, and a profile for each machine."""

import argparse

import pytest

from assistant.app.config import Config, choose_profile, load_config, offer
from assistant.base.errors import SettingError
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
    [("port = true", "port must be a whole number"), ("sessions = 0", "sessions must be a whole number, 1 or more"),
     ("port = 65536", "port must be a whole number, 0 to 65535, not 65536"), ("threads = -1", "0 to 1024, not -1"),
     ('profile = "huge"', "profile must be one of 'auto', 'tiny'"), ("nonsense = 1", "no setting 'nonsense'"),
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
    assert choose_profile("auto", 48 * gib, ("desk", "desk-9b", "desk-27b")).name == "desk-9b"
    assert choose_profile("auto", 48 * gib, ()).name == "tiny" and offer(48 * gib).name == "desk-9b"
    assert choose_profile("desk", 0, ()).name == "desk" and offer(0) is None
    assert Config.__dataclass_params__.frozen


def test_a_model_may_be_loaded_without_its_eyes(tmp_path):
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    environment = {"ASSISTANT_HOME": str(tmp_path)}
    assert load_config(model_flags(parser.parse_args([])), environment).vision == "auto"
    assert load_config(model_flags(parser.parse_args(["--no-vision"])), environment).vision == "off"
    with pytest.raises(SettingError, match="vision"):
        load_config({"vision": "perhaps"}, environment)
