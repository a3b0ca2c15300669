"""Models of other programs, in folders laid out as theirs are: found, named, and refused in one line each."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.app.config import load_config
from assistant.app.found import FOLDER, HUB, LM_STUDIO, OLLAMA, FoundModel, ModelPlace, find_models, places
from assistant.app.places import local_path
from assistant.app.verdict import verdict
from assistant.base.errors import SettingError
from assistant.commands import models
from tests.fakes.gguf_files import write_decoder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "small.gguf"
    write_decoder(path)
    return path


def tag(folder: Path, name: str, content: bytes | None, *, kind: str = "model", size: int | None = None) -> None:
    """A manifest of Ollama's, and its blob unless there is none."""
    digest = f"sha256:{abs(hash(name)):064x}"
    layer = {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": digest, "size": size or len(content or b"")}
    manifest = folder / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    licence = {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:0", "size": 1}
    manifest.write_text(json.dumps({"schemaVersion": 2, "config": {}, "layers": [licence, layer]}))
    if content is not None:
        (folder / "blobs").mkdir(exist_ok=True)
        (folder / "blobs" / digest.replace(":", "-")).write_bytes(content)


def found_in(program: str, folder: Path) -> dict[str, FoundModel]:
    return {model.name: model for model in find_models([ModelPlace(program, folder)])}


def test_ollamas_tags_are_found_and_what_is_wrong_is_said(tmp_path: Path, small: Path) -> None:
    whole = small.read_bytes()
    tag(tmp_path, "registry.ollama.ai/library/tiny/1b", whole)
    tag(tmp_path, "hf.co/someone/tiny-GGUF/Q4_K_M", whole)
    tag(tmp_path, "registry.ollama.ai/library/half/latest", whole[:100], size=len(whole))
    tag(tmp_path, "registry.ollama.ai/library/gone/latest", None, size=7)
    tag(tmp_path, "registry.ollama.ai/library/mac/latest", b"x", kind="tensor")
    (tmp_path / "manifests" / "registry.ollama.ai" / "library" / "odd").mkdir()
    (tmp_path / "manifests" / "registry.ollama.ai" / "library" / "odd" / "1").write_text("{}")
    found = found_in(OLLAMA, tmp_path)
    assert found["tiny:1b"].trouble == found["hf.co/someone/tiny-GGUF:Q4_K_M"].trouble == ""
    assert found["tiny:1b"].nbytes == len(whole) and found["tiny:1b"].path.parent == tmp_path / "blobs"
    assert found["half:latest"].trouble == f"100 of {len(whole)} bytes are here; `ollama pull half:latest` goes on"
    assert found["gone:latest"].trouble.startswith("0 of 7 bytes are here")
    assert "MLX tensors" in found["mac:latest"].trouble
    assert "is not understood" in found["odd:1"].trouble
    assert verdict(found["tiny:1b"].path, 512).told.startswith("runs: 0.0 GB in eight bits with 512 tokens")


def test_folders_of_other_programs_are_walked(tmp_path: Path, small: Path) -> None:
    studio = tmp_path / "studio" / "maker" / "tiny-GGUF"
    studio.mkdir(parents=True)
    for name in ("tiny-Q8_0.gguf", "mmproj-tiny.gguf", "big-00001-of-00002.gguf", "big-00002-of-00002.gguf"):
        (studio / name).write_bytes(small.read_bytes())
    assert list(found_in(LM_STUDIO, tmp_path / "studio")) == [
        "maker/tiny-GGUF/big-00001-of-00002.gguf", "maker/tiny-GGUF/tiny-Q8_0.gguf",
    ]  # fmt: skip
    snapshot = tmp_path / "hub" / "models--maker--tiny" / "snapshots" / "0a1b"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"1234")
    (snapshot / "tiny.gguf").write_bytes(small.read_bytes())
    assert list(found_in(HUB, tmp_path / "hub")) == ["maker/tiny", "maker/tiny/tiny.gguf"]
    assert found_in(HUB, tmp_path / "hub")["maker/tiny"].nbytes == 4


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda b: b[: len(b) // 2], "does not run: .*damaged or incomplete; fetch it again"),
        (lambda b: b.replace(b"llama", b"gemma", 1), "architecture 'gemma' is not implemented"),
        (lambda b: b.replace(b"qwen2", b"bloom"), "pre-tokenizer 'bloom' is not implemented"),
    ],
)  # fmt: skip
def test_a_model_that_does_not_run_is_told_why(
    tmp_path: Path, small: Path, spoil: Callable[[bytes], bytes], said: str
) -> None:
    (tmp_path / "spoilt.gguf").write_bytes(spoil(small.read_bytes()))
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(verdict(tmp_path / "spoilt.gguf", 512).told)


def test_a_refused_folder_is_named_with_the_command_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refused)
    [model] = find_models([ModelPlace(OLLAMA, tmp_path)])
    assert model.trouble == (
        f"{tmp_path / 'manifests'} may not be read; `sudo chmod -R a+rX {tmp_path}` allows it"
    )


def test_settings_of_other_programs_are_followed(tmp_path: Path) -> None:
    environment = {"OLLAMA_MODELS": "/o", "HF_HOME": "/h", "LLAMA_CACHE": "/l", "XDG_CACHE_HOME": "/c"}
    folders = [str(place.folder) for place in places(tmp_path, environment, Path("/me"))]
    assert folders == [
        str(tmp_path), "/h/hub", "/o", "/usr/share/ollama/.ollama/models", "/me/.lmstudio/models",
        "/c/lm-studio/models", "/l",
    ]  # fmt: skip
    assert places(tmp_path, {}, Path("/me"))[1].folder == Path("/me/.cache/huggingface/hub")
    assert places(tmp_path, {"HF_HUB_CACHE": "/x"}, Path("/me"))[1].folder == Path("/x")


def test_a_name_is_as_good_as_a_path(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    tag(tmp_path / "ollama", "registry.ollama.ai/library/tiny/1b", small.read_bytes())
    tag(tmp_path / "ollama", "registry.ollama.ai/library/half/1b", b"x", size=9)
    assert local_path(load_config({"llm": "tiny:1b"}), "llm", "").read_bytes() == small.read_bytes()
    with pytest.raises(SettingError, match="--llm: half:1b: 1 of 9 bytes are here"):
        local_path(load_config({"llm": "half:1b"}), "llm", "")


def test_the_command_lists_a_folder(tmp_path: Path, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.gguf").write_bytes(small.read_bytes())
    (tmp_path / "two.gguf").write_bytes(small.read_bytes()[:5000])
    import argparse

    parser = argparse.ArgumentParser()
    models.add_arguments(parser)
    assert models.run(parser.parse_args([str(tmp_path)])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "one.gguf" and "runs: " in lines[1] and lines[1].strip().startswith(FOLDER)
    assert lines[2] == "two.gguf" and "does not run: " in lines[3] and len(lines) == 4
