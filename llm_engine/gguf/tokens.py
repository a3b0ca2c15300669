"""The tokenizer and the chat template that a GGUF file carries."""

from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from llm_engine.errors import TextError
from llm_engine.gguf.container import GgufFile

_CONTROL, _OWN = 3, 4  # kinds of tokens that are found in a text before it is split; control ones are not words
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SPLITS = {
    "llama-bpe": rf"{_ENDINGS}{_WORDS}|\p{{N}}{{1,3}}{_TAIL}",
    "qwen2": rf"{_ENDINGS}{_WORDS}|\p{{N}}{_TAIL}",
    "qwen35": _ENDINGS
    + r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
"""How a text is cut before its bytes are joined to tokens, as each family's tokenizer.json has it."""
_SMOL = "smollm"
_WHOLE = {"llama-bpe", "tekken"}
"""Those that take a whole piece as one token where there is such a token, whatever the merges say."""
_COMPOSED = {"qwen2", "qwen35"}
"""Those that compose letters with their accents (NFC) first."""


def tokenizer_of(file: GgufFile) -> Tokenizer:
    """Raises TextError, naming what is not known."""
    kind, pre = file.metadata.get("tokenizer.ggml.model"), file.metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise TextError(f"{file.path.name}: tokenizer {kind!r} is not implemented; gpt2 (byte-level pairs) is")
    if pre not in (_SMOL, *_SPLITS):
        known = ", ".join((_SMOL, *_SPLITS))
        raise TextError(f"{file.path.name}: pre-tokenizer {pre!r} is not implemented; {known} are")
    tokens, merges, kinds = (_list(file, name) for name in ("tokens", "merges", "token_type"))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    try:
        tokenizer = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=pre in _WHOLE))
    except Exception as error:  # the library raises nothing narrower
        raise TextError(f"{file.path.name}: its tokens and merges are no tokenizer ({error})") from error
    if pre in _COMPOSED:
        tokenizer.normalizer = normalizers.NFC()
    cut = pre_tokenizers.Digits(True) if pre == _SMOL else pre_tokenizers.Split(Regex(_SPLITS[pre]), "isolated")
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pre == _SMOL)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, whole])
    tokenizer.decoder = decoders.ByteLevel()
    for token, sort in zip(tokens, kinds, strict=False):
        if sort in (_CONTROL, _OWN):
            tokenizer.add_tokens([AddedToken(token, special=sort == _CONTROL, normalized=False)])
    return tokenizer


def template_of(file: GgufFile) -> tuple[str, str, str]:
    """The chat template, and the texts that it may write for the beginning and the end of a sequence.

    Raises TextError.
    """
    source = file.metadata.get("tokenizer.chat_template")
    if not isinstance(source, str):
        raise TextError(f"{file.path.name}: it has no chat template; take a file of the model's instruct version")
    tokens = _list(file, "tokens")
    ends = (file.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos"))
    begin, end = (tokens[i] if isinstance(i, int) and 0 <= i < len(tokens) else "" for i in ends)
    return source, begin, end


def declared_ends(file: GgufFile) -> list[int]:
    """The ids that the metadata say end a turn or a text, the likeliest end of a turn first."""
    found = (file.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eot", "eos", "eom"))
    return [index for index in found if isinstance(index, int)]


def _list(file: GgufFile, name: str) -> list[Any]:
    found = file.metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(found, list) or not found:
        raise TextError(f"{file.path.name}: it has no tokenizer.ggml.{name}, so it cannot turn text into tokens")
    return found
