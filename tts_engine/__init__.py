"""The voice engine over static buffers: Higgs Audio v3 from its published checkpoint, and a small voice. See README.md.

    backbone        the network over text ids and rows of codes
    bpe_frontend    text to ids by the published tokenizer
    chunks          windows of the codec over a session, and their sound
    codec           the engine's contract with a codec, and the codec that a folder brings
    codec_files     opens the codec of a checkpoint; turns a recording into codes with nothing else loaded
    config          config.json as frozen types
    codec_kernels   the published codec's layers, on a GPU
    dac_codec       the published codec: codes to sound
    dac_encode      the published codec: a recording to codes
    dac_layers      codes to sound over those kernels
    delay           codes staggered into rows
    engine          the public face: load, speak, codes, decode, voices, capsules
    errors          every error of the package
    footprint       how much device memory an engine will need
    framewise       layers whose frames do not depend on the window
    frontend        the engine's contract with a front end
    generator       a session: pieces in, rows out, cuts
    graphs          the captured shapes
    guards          end a piece early
    inputs          the host's writes for the captured steps
    istft_codec     the small voice's codec
    markup          control tags, and structure that is removed
    phone_frontend  text to ids by phones, for the small voice
    phones          words to phones
    piece           the host's record of a session
    prompt          voice and text as input of the backbone
    reading/        Markdown, numbers, dates, names and formulas in words: the rules of text
    reference       recordings made fit for cloning
    row_end         the end of a row, in one kernel
    sampling        the draw of a row
    state           every live buffer, declared once
    steps           the captured steps: prefill, row, codec window
    streaming       decides which frames are decoded when
    text            written English as people say it
    tiny/           our own small voice, with its card
    voice_file      a stored voice: codes and transcript, one safe file
    weights         published checkpoints in and out
"""

from typing import TYPE_CHECKING

from capsules.exec.lazy import lazy_names

if TYPE_CHECKING:
    from tts_engine.chunks import Sound
    from tts_engine.engine import HiggsTTS
    from tts_engine.errors import (
        CheckpointRefused,
        ConfigRefused,
        ContextFull,
        DelayError,
        EngineMisuse,
        ReferenceRefused,
        TextRefused,
        TTSError,
    )
    from tts_engine.piece import PieceFacts
    from tts_engine.reference import Voice
    from tts_engine.sampling import VoiceSampling

__all__ = [
    "CheckpointRefused",
    "ConfigRefused",
    "ContextFull",
    "DelayError",
    "EngineMisuse",
    "HiggsTTS",
    "PieceFacts",
    "ReferenceRefused",
    "Sound",
    "TTSError",
    "TextRefused",
    "Voice",
    "VoiceSampling",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__,
    {
        "chunks": "Sound",
        "engine": "HiggsTTS",
        "errors": "CheckpointRefused ConfigRefused ContextFull DelayError EngineMisuse "
        "ReferenceRefused TextRefused TTSError",
        "piece": "PieceFacts",
        "reference": "Voice",
        "sampling": "VoiceSampling",
    },
)
