"""Decodes windows with several threads and prints, as one JSON line, for which codec and count one was not one-shot.

Run as its own process with OMP_WAIT_POLICY=passive: threads that spin while they wait take minutes on a busy machine.
"""

import json

import torch

from tests.tts_engine.miniature import CODEC, Size, miniature_tensors
from tts_engine.codec import Codec
from tts_engine.dac_codec import dac_codec
from tts_engine.istft_codec import CausalCodec, CodecShape, IstftCodec


def differs(codec: Codec) -> bool:
    left, right = codec.left_frames, codec.right_frames
    frames = left + 3 + right
    codes = torch.randint(0, codec.codebook_size, (codec.codebooks, frames + 9))
    whole = codec.to_sound(codes)
    for start in (0, 4):
        window = codec.decode_window(codes[:, start : start + frames], torch.tensor([0, frames]))
        low, high = (left if start else 0), frames - right
        if not torch.equal(window[960 * low : 960 * high], whole[960 * (start + low) : 960 * (start + high)]):
            return True
    return not torch.equal(codec.to_sound(codes[:, : 1 + right])[:960], whole[:960])


def main() -> None:
    torch.manual_seed(0)
    stored = {n.removeprefix(CODEC): t for n, t in miniature_tensors(Size(), 0).items() if n.startswith(CODEC)}
    shape = CodecShape(width=64, latent=32)
    codecs = {
        "dac": dac_codec(stored, 8, torch.device("cpu")),
        "istft": CausalCodec(shape, IstftCodec(shape).state_dict()),
    }
    wrong = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        wrong += [f"{name} with {count} threads" for name, codec in codecs.items() if differs(codec)]
    print(json.dumps(wrong))


if __name__ == "__main__":
    main()
