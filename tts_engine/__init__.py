"""The voice engine over static buffers: Higgs Audio v3 from its published checkpoint, and a small voice. See README.md.

    backbone        the network over text ids and rows of codes
    bpe_frontend    text to ids by the published tokenizer
    codec           what is asked of a codec, and which one a folder brings
    codec_files     the codec that a checkpoint brings, opened; a recording to codes with nothing else loaded
    config          config.json as frozen types
    codec_kernels   the published codec's layers, on a GPU
    dac_codec       the published codec: codes to sound
    dac_encode      the published codec: a recording to codes
    dac_layers      codes to sound over those kernels
    delay           codes staggered into rows
    engine          the face: load, speak, codes, decode, voices, capsules
    errors          every error of the package
    footprint       what an engine will take of a device
    framewise       layers whose frames do not depend on the window
    frontend        what is asked of a front end
    generator       a session: pieces in, rows out, cuts
    graphs          which shapes are captured
    guards          when a piece must be ended for it
    istft_codec     the small voice's codec
    markup          control tags, and structure that is dropped
    phone_frontend  text to ids by phones, for the small voice
    phones          words to phones
    piece           what the host knows of a session
    prompt          voice and text as what the backbone is fed
    row_end         what closes a row, in one kernel
    sampling        how a row is drawn
    state           every live buffer, declared once
    steps           what is captured: prefill, row, codec window
    streaming       which frames are decoded when
    text            written English as people say it
    text_tables     the words for numbers' companions: data of text
    tiny/           our own small voice, with its card
    voice_file      a voice that is kept: codes and transcript, one safe file
    voices          recordings made fit for cloning
    weights         published checkpoints in and out
"""

from tts_engine.engine import HiggsTTS, PieceFacts, Sound
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
from tts_engine.sampling import VoiceSampling
from tts_engine.voices import Voice

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
