"""The small codec: causal, streamed equal to one-shot, honest about its left context, strict about its config."""

import copy

import pytest
import torch

from tts_engine.errors import CheckpointRefused, ConfigRefused
from tts_engine.istft_codec import CausalCodec, CodecShape, IstftCodec, mel_filters

SHAPE = CodecShape(
    codebooks=3, codebook_size=16, code_dim=8, latent=12, width=16, expansion=2, encoder_blocks=1, decoder_blocks=2
)


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(0)
    model = IstftCodec(SHAPE)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.quantiser.codebook.normal_()
    return model


@pytest.fixture(scope="module")
def codec(module):
    return CausalCodec(SHAPE, module.state_dict())


def codes_of(frames, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, SHAPE.codebook_size, (SHAPE.codebooks, frames), generator=generator)


def test_left_frames_is_the_exact_reach_of_a_frame(module):
    precise = copy.deepcopy(module).double()
    frames, at = 3 * SHAPE.left_frames, SHAPE.left_frames
    changed = codes_of(frames)
    changed[:, at] = (changed[:, at] + 1) % SHAPE.codebook_size
    with torch.no_grad():
        before, after = precise.to_sound(codes_of(frames)[None])[0], precise.to_sound(changed[None])[0]
    moved = (after != before).view(frames, SHAPE.hop).any(1).nonzero().flatten()
    assert moved.min() == at, "a frame depends on a later one"
    assert moved.max() == at + SHAPE.left_frames, "left_frames is not the reach of the decoder"


@pytest.mark.parametrize("size", [1, 3, 7])
def test_windows_with_left_context_equal_one_shot(codec, size):
    codes, left = codes_of(40), SHAPE.left_frames
    whole = codec.to_sound(codes)
    parts = []
    for start in range(0, 40, size):
        end = min(40, start + size)
        window = torch.zeros(SHAPE.codebooks, left + size, dtype=torch.int64)
        first = max(0, start - left)
        place = left - (start - first)
        window[:, place : left + end - start] = codes[:, first:end]
        valid = torch.tensor([place, left + end - start])
        parts.append(codec.decode_window(window, valid)[SHAPE.hop * left : SHAPE.hop * (left + end - start)])
    assert torch.equal(torch.cat(parts), whole)


def test_too_little_context_differs(module):
    precise = copy.deepcopy(module).double()
    codes, left = codes_of(60)[None], SHAPE.left_frames - 1
    with torch.no_grad():
        whole, short = precise.to_sound(codes)[0], precise.to_sound(codes[:, :, 40 - left : 41])[0]
    assert not torch.equal(short[-SHAPE.hop :], whole[40 * SHAPE.hop : 41 * SHAPE.hop])


def test_what_lies_outside_the_valid_columns_is_not_heard(codec):
    codes = codes_of(9)
    junk = torch.cat([codes_of(20, 1), codes, codes_of(5, 2)], dim=1)
    made = codec.decode_window(junk, torch.tensor([20, 29]))[20 * SHAPE.hop : 29 * SHAPE.hop]
    assert torch.equal(made, codec.to_sound(codes))


@pytest.mark.parametrize("samples", [1, 959, 960, 961, 24_001])
def test_encoding_covers_every_sample(codec, samples):
    wave = torch.randn(samples, generator=torch.Generator().manual_seed(1)) * 0.1
    codes = codec.to_codes(wave)
    assert codes.shape == (SHAPE.codebooks, -(-samples // SHAPE.hop))
    assert codes.dtype == torch.int64 and codes.min() >= 0 and codes.max() < SHAPE.codebook_size


def test_the_first_codebook_takes_the_nearest_entry(module):
    reduced = torch.randn(50, SHAPE.code_dim, generator=torch.Generator().manual_seed(2))
    codes = module.quantiser.encode(reduced)
    nearest = torch.cdist(reduced, module.quantiser.codebook[0]).argmin(1)
    assert torch.equal(codes[:, 0], nearest)
    rest = reduced - module.quantiser.codebook[0][nearest]
    assert torch.equal(codes[:, 1], torch.cdist(rest, module.quantiser.codebook[1]).argmin(1))


def test_runtime_tensors_leave_the_encoder_out(codec):
    names = set(codec.tensors)
    assert "quantiser.codebook" in names and "decoder.window" in names
    assert not any(name.startswith("encoder.") for name in names)


@pytest.mark.parametrize(
    "change",
    [{"codec_type": "other"}, {"width": 0}, {"latent": "12"}, {"surprise": 1}, {"hop": 961}, {"codebooks": True}],
    ids=str,
)
def test_a_strange_config_is_refused(change):
    with pytest.raises(ConfigRefused, match=next(iter(change))):
        CodecShape.parse({**SHAPE.to_json(), **change})


def test_the_config_survives_json():
    assert CodecShape.parse(SHAPE.to_json()) == SHAPE


def test_tensors_that_do_not_fit_are_named(module):
    state = dict(module.state_dict())
    state["decoder.head.bias"] = state["decoder.head.bias"][:-1]
    with pytest.raises(CheckpointRefused, match=r"decoder\.head\.bias"):
        CausalCodec(SHAPE, state)


def test_mel_filters_are_triangles_that_cover_the_band():
    filters = mel_filters(1024, 80, 24_000)
    assert filters.shape == (80, 513)
    assert (filters >= 0).all() and (filters.sum(1) > 0).all()
    assert filters.argmax(1).diff().min() >= 0
