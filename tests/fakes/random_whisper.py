"""A small Whisper of random weights in the published layouts: a folder of transformers', and CTranslate2's made of it.

python -m tests.fakes.random_whisper FOLDER     writes FOLDER/hf, and FOLDER/ct2 where ctranslate2 is installed

It writes words, whatever it hears. The vocabulary is laid out as in the many-language sizes (51,865 pieces):
CTranslate2 tells these from the English ones by that number. 0.9 million parameters.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizerFast

TEXT = 50_257
"""Pieces of text; behind them stand end, begin, languages, tasks and 1,501 times."""
LANGUAGES = 99
LONGEST = 24
"""Tokens of a text: random weights seldom end by themselves."""


def pieces() -> list[str]:
    """256 bytes as byte-level BPE writes them, then made-up words."""
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    return bytes_ + [f"Ġw{number}" for number in range(TEXT - len(bytes_))]


def specials() -> list[str]:
    from transformers.models.whisper.tokenization_whisper import LANGUAGES as NAMES

    languages = [f"<|{code}|>" for code in list(NAMES)[:LANGUAGES]]
    tasks = ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
    times = [f"<|{step * 0.02:.2f}|>" for step in range(1501)]
    return ["<|endoftext|>", "<|startoftranscript|>", *languages, *(f"<|{task}|>" for task in tasks), *times]


def write_hf(folder: Path, width: int = 16, layers: int = 1, seed: int = 0) -> Path:
    """Weights, tokenizer and settings, as `transformers` reads them."""
    texts = pieces()
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(texts)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in specials()])
    number = {name: TEXT + at for at, name in enumerate(specials())}
    begin, end = number["<|startoftranscript|>"], number["<|endoftext|>"]
    config = WhisperConfig(
        vocab_size=TEXT + len(number),
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width,
        init_std=0.3,
        decoder_start_token_id=begin,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
    )
    torch.manual_seed(seed)
    model = WhisperForConditionalGeneration(config).eval()
    settings = model.generation_config
    settings.update(
        is_multilingual=True,
        lang_to_id={name: number[name] for name in specials()[2 : 2 + LANGUAGES]},
        task_to_id={task: number[f"<|{task}|>"] for task in ("translate", "transcribe")},
        no_timestamps_token_id=number["<|notimestamps|>"],
        prev_sot_token_id=number["<|startofprev|>"],
        alignment_heads=[[0, 0]],
        suppress_tokens=[*range(256), begin],  # lone bytes are no words
        begin_suppress_tokens=[end],
        max_length=LONGEST,
        language="<|en|>",
        task="transcribe",
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    named = dict.fromkeys(("eos_token", "bos_token", "unk_token", "pad_token"), "<|endoftext|>")
    WhisperTokenizerFast(tokenizer_object=tokenizer, **named).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))  # as it is, without what the class adds
    WhisperFeatureExtractor().save_pretrained(folder)
    return folder


def write_ct2(hf: Path, folder: Path) -> Path:
    """The same for CTranslate2, as its converter writes it. Needs ctranslate2."""
    from ctranslate2.converters import TransformersConverter

    copied = [name for name in ("tokenizer.json", "preprocessor_config.json") if (hf / name).is_file()]
    TransformersConverter(str(hf), copy_files=copied).convert(str(folder), quantization="int8", force=True)
    return folder


if __name__ == "__main__":
    root = Path(sys.argv[1])
    made = write_hf(root / "hf")
    print(json.dumps({"hf": str(made), "ct2": str(write_ct2(made, root / "ct2"))}))
