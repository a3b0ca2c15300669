"""The shipped personas are those the small model learnt, and a wrong file is refused by name."""

import pytest

from assistant.base.errors import SettingError
from assistant.personas import load_personas, read_persona
from recipes.texts.tools import PERSONAS


def test_shipped_personas_are_those_the_small_model_learnt(tmp_path):
    personas = load_personas(tmp_path / "none")
    assert {one.title: one.instructions for one in personas.values()} == PERSONAS
    (tmp_path / "eve.toml").write_text('instructions = "You are Eve."\n[sampling]\ntemperature = 0.5\n')
    eve = load_personas(tmp_path)["eve"]
    assert (eve.title, eve.sampling.temperature, eve.tools) == ("eve", 0.5, None)
    for wrong in ('title = "x"', 'instructions = 3', 'instructions = "a"\nvoise = "b"', "[sampling]\nheat = 1"):
        with pytest.raises(SettingError, match=r"bad\.toml"):
            read_persona("bad", wrong, "bad.toml")


@pytest.mark.parametrize("line", ["top_p = 5", "temperature = nan", "temperature = -1", "top_k = -3"])
def test_sampling_that_no_model_can_use_is_refused_before_it_fails_replies(line):
    with pytest.raises(SettingError, match=r"eve\.toml: sampling\..* allowed: 0 to"):
        read_persona("eve", f'instructions = "You are Eve."\n[sampling]\n{line}\n', "eve.toml")
