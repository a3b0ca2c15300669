"""A first look is made once for a file in a form, and shown again; the command looks anew."""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assistant.app import looks
from assistant.app.looks import first_look, known_look
from assistant.commands import models
from llm_engine import HybridLLM
from llm_engine.firstlook import FirstLook
from tests.fakes.gguf_files import write_decoder

GOOD = FirstLook(0.9, 0.1, 0.8, "Paris.", True, False)


def engine(digest: str) -> HybridLLM:
    return cast(HybridLLM, SimpleNamespace(fingerprint=SimpleNamespace(digest=digest)))


def test_a_look_is_kept_with_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def look_at(llm: Any, chat: Any, *, narrow: bool) -> FirstLook:
        made.append(llm.fingerprint.digest)
        return GOOD

    monkeypatch.setattr(looks, "look_at", look_at)
    monkeypatch.setattr(looks, "Chat", SimpleNamespace(load=lambda path: None))
    file, kept, told = tmp_path / "model.gguf", tmp_path / "digests", list[str]()
    file.write_bytes(b"one")
    assert known_look(file, kept) is None
    for digest in ("a", "a", "b", "a"):
        assert first_look(engine(digest), file, kept, told.append) == GOOD
    assert made == ["a", "b"] and len(told) == 2
    assert known_look(file, kept) == GOOD
    first_look(engine("a"), file, kept, told.append, again=True)
    assert made == ["a", "b", "a"]
    for damaged in ("", "{}", json.dumps({"look": {"text_bits": 1}, "of": []})):
        (kept / "look-a.json").write_text(damaged)
        assert first_look(engine("a"), file, kept, told.append) == GOOD
    assert len(made) == 6
    file.write_bytes(b"another")
    assert known_look(file, kept) is None, "that was another file"


@pytest.mark.slow
def test_the_command_checks_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    monkeypatch.setenv("ASSISTANT_MAX_POSITIONS", "256")
    monkeypatch.setenv("ASSISTANT_WITHOUT", "kernels")
    write_decoder(tmp_path / "random.gguf")
    parser = argparse.ArgumentParser()
    models.add_arguments(parser)
    assert models.run(parser.parse_args(["check", str(tmp_path / "random.gguf")])) == 1
    out = capsys.readouterr().out
    assert "bits a letter" in out and "What is the capital of France?" in out and "did not end by itself" in out
    assert out.splitlines()[-1].startswith("this file loads but does not speak sense")
    look = known_look(tmp_path / "random.gguf", tmp_path / "digests")
    assert look is not None and look.trouble in out
