"""One file of a repository: what is read, fits and was asked for; every refusal says what to take instead."""

import pytest

from assistant.app.ggufs import gguf_file, quantisation
from assistant.app.hub import HubError, fetch, is_fetched, is_present, list_repo, model_folder
from tests.fakes.hubserver import Hub, running

GB = 10**9
SIZES = {
    "m-IQ2_M.gguf": 2 * GB, "m-Q3_K_M.gguf": 3 * GB, "m-Q4_0.gguf": 4 * GB, "m-Q4_K_M.gguf": 5 * GB,
    "m-UD-Q4_K_XL.gguf": 5 * GB, "m-Q8_0.gguf": 9 * GB, "mmproj-m-F16.gguf": GB, "mtp-m-Q8_0.gguf": GB,
    "m-BF16-00001-of-00002.gguf": 9 * GB, "m-BF16-00002-of-00002.gguf": 9 * GB, "split/m-Q6_K.gguf": GB, "README.md": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "free_gb", "file"),
    [
        ("", 64, "m-Q4_K_M.gguf"), ("", 6, "m-Q4_0.gguf"), ("q8_0", 1, "m-Q8_0.gguf"),
        ("UD-Q4_K_XL", 64, "m-UD-Q4_K_XL.gguf"),
    ],
)  # fmt: skip
def test_four_bits_that_fit_unless_another_is_named(wanted: str, free_gb: int, file: str) -> None:
    assert gguf_file(SIZES, wanted, free_gb * GB) == file


def test_a_small_model_is_taken_in_eight_bits_and_a_single_file_whatever_its_name() -> None:
    assert gguf_file({"s.Q4_K_M.gguf": GB // 10, "s.Q8_0.gguf": GB // 6}, "", 4 * GB) == "s.Q8_0.gguf"
    assert gguf_file({"model.gguf": GB}, "", 4 * GB) == "model.gguf"
    names = ("SmolLM2-135M-Instruct.Q4_1.gguf", "a-ud-q5_k_xl.gguf", "b-IQ4_XS-00001-of-00003.gguf", "Qwen3-8B.gguf")
    assert [*map(quantisation, names)] == ["Q4_1", "UD-Q5_K_XL", "IQ4_XS", ""]


@pytest.mark.parametrize(
    ("sizes", "wanted", "said"),
    [
        (SIZES, "", r"even Q4_0 needs 5\.6 GB of memory, and 1\.0 GB are free; add :Q4_0 to fetch it all the same"),
        (SIZES, "IQ2_M", "IQ2_M is not read; choose from Q4_K_M, Q4_0, Q8_0"),
        (SIZES, "BF16", "BF16 is cut into several files, which are not read; choose from"),
        (SIZES, "Q9", "there is no Q9; choose from"),
        ({"m-Q4_K_M-00001-of-00002.gguf": 1}, "", "cut into parts, which are not read; take a repository"),
        ({"m-IQ1_S.gguf": 1, "m-IQ2_M.gguf": 1}, "", "it has IQ1_S, IQ2_M, and none of these is taken"),
    ],
)
def test_every_refusal_says_what_to_take(sizes: dict[str, int], wanted: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gguf_file(sizes, wanted, GB)


def test_a_repository_of_gguf_files_is_fetched_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr("assistant.base.memory.available_bytes", lambda: 4 * GB)
    files = {"m-Q4_K_M.gguf": b"GGUF four", "m-Q8_0.gguf": b"GGUF eight", "mmproj.gguf": b"x", "LICENSE": b"be nice"}
    both = files | {"config.json": b"{}", "model.safetensors": b"w"}
    with running(Hub({"a/ggufs": files, "a/both": both}, {"license": "mit"})) as hub:
        folder = model_folder(tmp_path, "a/ggufs:Q4_K_M")
        for asked, name in (("a/ggufs", "m-Q8_0.gguf"), ("a/ggufs:Q4_K_M", "m-Q4_K_M.gguf")):
            assert not is_fetched(tmp_path, asked)
            listing = list_repo(asked, hub.url)
            assert (listing.repo, {file.name for file in listing.files}) == ("a/ggufs", {name, "LICENSE"})
            fetch(listing, folder, lambda name, n: None, hub.url)
            assert is_fetched(tmp_path, asked) and (folder / name).read_bytes() == files[name]
        assert is_present(folder) and (folder / "m-Q8_0.gguf").is_file()
        whole = {file.name for file in list_repo("a/both", hub.url).files}
        assert whole == {"config.json", "model.safetensors", "LICENSE"}
        with pytest.raises(HubError, match="a/both: there is no Q5_0; choose from Q4_K_M, Q8_0"):
            list_repo("a/both:Q5_0", hub.url)
