"""A stored voice: the codes of its reference and its transcript, one safetensors file each.

Codes are meaningful to one codec only, so a file names the codec that made them by a digest of its codebooks.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save

from capsules.durable import write_durably
from capsules.errors import CapsuleError
from capsules.safefile import read_header
from tts_engine.config import FRAME_SAMPLES, SAMPLE_RATE
from tts_engine.errors import ReferenceRefused
from tts_engine.reference import Voice, checked_codes

SUFFIX = ".safetensors"
FORMAT = "voice/1"
LARGEST_BYTES = 1 << 20
"""Upper limit; thirty seconds take 48 kB."""


@dataclass(frozen=True, eq=False)
class VoiceFile:
    """`origin`: "designed" by the model from a seed, or "given" as a recording. `codec`: the codec of the codes."""

    voice: Voice
    origin: str
    codec: str

    @property
    def seconds(self) -> float:
        """Duration of the reference."""
        return 0.0 if self.voice.codes is None else self.voice.codes.shape[1] * FRAME_SAMPLES / SAMPLE_RATE


def write_voice_file(path: Path, file: VoiceFile) -> None:
    """Write all or nothing, readable by the owner only. Raises OSError."""
    assert file.voice.codes is not None
    about = {"transcript": file.voice.transcript, "origin": file.origin, "codec": file.codec}
    write_durably(path, [save({"codes": file.voice.codes.contiguous()}, {FORMAT: json.dumps(about)})])


def read_voice_file(path: Path) -> VoiceFile:
    """The voice is named after the file. Raises ReferenceRefused if it is not a voice, OSError if it cannot be read."""
    try:
        if (size := path.stat().st_size) > LARGEST_BYTES:
            raise ReferenceRefused(f"{path} has {size} bytes; no voice has more than {LARGEST_BYTES}")
        about = json.loads(read_header(path).metadata.get(FORMAT, "null"))
        tensors = load(path.read_bytes())
    except (CapsuleError, SafetensorError, ValueError) as error:
        raise ReferenceRefused(f"{path} is damaged: {error}; remove it and add the voice again") from error
    named = (about.get(name) for name in ("transcript", "origin", "codec")) if isinstance(about, dict) else ()
    fields = [one for one in named if isinstance(one, str)]
    if len(fields) != 3 or set(tensors) != {"codes"}:
        raise ReferenceRefused(f"{path} holds no voice of this program ({FORMAT}); remove it and add the voice again")
    transcript, origin, codec = fields
    codes = checked_codes(tensors["codes"], len(tensors["codes"]), 1 << 15)
    return VoiceFile(Voice(path.stem, codes, transcript), origin, codec)
