"""Adaptation to a speaker: the acoustic model is read as pocketsphinx reads it, the factors are the likeliest."""

from itertools import combinations

import numpy as np
import pytest
from pocketsphinx import Config, Decoder

from assistant.asr import gmm
from assistant.asr.adaptation import Adaptation, AlignedWord, likeliest
from assistant.asr.gmm import STATES, STREAMS, english, features_of
from assistant.asr.mfcc import CEPSTRA
from assistant.asr.pocketsphinx import TINY
from assistant.base.errors import EngineFailed

TIMER = ("T", "AY", "M", "ER")


def said(seed: int, phones=TIMER, frames: int = 4) -> np.ndarray:
    """Cepstra [T, C]: every state `frames` long, under its likeliest Gaussian."""
    rng, model, rows = np.random.default_rng(seed), english(), []
    for phone in (model.phones[name] for name in phones):
        for state in range(STATES):
            best = model.weights[phone, 0, :, state].argmax()
            spread = model.precisions[phone, 0, best] ** -0.5
            rows += [model.means[phone, 0, best] + spread * rng.standard_normal(CEPSTRA) for _ in range(frames)]
    return np.array(rows)


def state_chances(model, features, phones) -> np.ndarray:
    """log p [T, J], Gaussian by Gaussian."""
    result = np.zeros((len(features), STATES * len(phones)))
    for t, frame in enumerate(features):
        for j in range(result.shape[1]):
            phone, state = phones[j // STATES], j % STATES
            for s in range(STREAMS):
                precisions, away = model.precisions[phone, s], frame[s] - model.means[phone, s]
                logs = 0.5 * (np.log(precisions / (2 * np.pi)) - precisions * away**2).sum(axis=1)
                result[t, j] += np.logaddexp.reduce(logs + model.weights[phone, s, :, state])
    return result


def test_slopes_are_those_of_the_decoder():
    cepstra = np.random.default_rng(0).standard_normal((9, CEPSTRA))
    features = features_of(cepstra)
    assert np.array_equal(features[:, 0], cepstra)
    assert np.array_equal(features[4, 1], cepstra[6] - cepstra[2])
    assert np.array_equal(features[4, 2], (cepstra[7] - cepstra[3]) - (cepstra[5] - cepstra[1]))
    assert np.array_equal(features[0, 1], cepstra[2] - cepstra[0])  # the first frame went on for ever before


def test_the_model_is_one_of_probabilities():
    model = english()
    assert len(model.phones) == 42 and model.phones["SIL"] == 32
    assert np.allclose(np.exp(model.weights).sum(axis=2), 0.95, atol=0.07)  # a byte each: they add up to nearly 1
    assert model.precisions.min() > 0 and np.isfinite(model.constants).all()


def test_the_path_is_the_likeliest_of_all():
    model = english()
    phones = [model.phones["T"], model.phones["AY"]]
    features = features_of(said(1, TIMER[:2], 2)[:10])
    chances = state_chances(model, features, phones)
    paths = [np.searchsorted(cuts, np.arange(10), side="right") for cuts in combinations(range(1, 10), 5)]
    best = max(paths, key=lambda path: chances[range(10), path].sum())
    assert np.array_equal(model.align(features, phones), best)
    assert model.align(features[:5], phones) is None


def test_phones_are_found_where_pocketsphinx_finds_them():
    """Its models know each phone's neighbours, ours do not: nearly all frames agree all the same."""
    files = {"lm": str(TINY / "words.lm"), "dict": str(TINY / "words.dict")}
    decoder = Decoder(Config(**files, beam=0.0, pbeam=0.0, wbeam=0.0, loglevel="FATAL"))
    settings = decoder.config
    settings["cmn"] = "none"
    decoder.reinit_feat(settings)
    cepstra = said(2, frames=5)
    decoder.set_align_text("timer")
    for second in (False, True):
        if second:
            decoder.set_alignment()
        decoder.start_utt()
        for frame in cepstra.astype(np.float32):
            decoder.process_cep(frame.tobytes())
        decoder.end_utt()
    theirs = [phone.name for word in decoder.get_alignment() for phone in word for _ in range(phone.duration)]
    model = english()
    path = model.align(features_of(cepstra)[: len(theirs)], [model.phones[name] for name in TIMER])
    ours = [TIMER[state // STATES] for state in path]
    assert np.mean([a == b for a, b in zip(ours, theirs, strict=True)]) > 0.9


def test_the_factors_are_the_likeliest():
    rng = np.random.default_rng(3)
    squares, products = rng.uniform(1, 50, CEPSTRA), rng.uniform(-20, 50, CEPSTRA)
    best = likeliest(60, squares, products)

    def worth(factors):
        return 60 * np.log(factors) - factors**2 * squares / 2 + factors * products

    assert (worth(best) > worth(best * 0.99)).all() and (worth(best) > worth(best * 1.01)).all()


def test_learning_makes_the_speaker_likelier():
    model, adaptation = english(), Adaptation(english())
    voice = said(4) * np.linspace(0.8, 1.4, CEPSTRA)
    phones = [model.phones[name] for name in TIMER]
    path = model.align(features_of(voice), phones)

    def worth(factors):
        chances = state_chances(model, features_of(voice * factors), phones)
        return chances[range(len(voice)), path].sum() + STREAMS * len(voice) * np.log(factors).sum()

    before = worth(adaptation.factors)
    for _ in range(3):
        adaptation.learn(voice, [AlignedWord(TIMER, 0, len(voice) - 1)])
        assert worth(adaptation.factors) > before
        before = worth(adaptation.factors)


def test_a_little_speech_changes_little():
    lot, bit = Adaptation(english()), Adaptation(english())
    lot.learn(np.tile(said(5), (6, 1)), [AlignedWord(TIMER, 48 * k, 48 * k + 47) for k in range(6)])
    bit.learn(np.tile(said(5), (6, 1)), [AlignedWord(TIMER, 0, 47)])
    assert 0 < np.abs(np.log(bit.factors)).sum() < np.abs(np.log(lot.factors)).sum()


@pytest.mark.parametrize("junk", [np.nan, 1e-6, 0.0], ids=str)
def test_what_leads_far_astray_is_refused(junk):
    adaptation = Adaptation(english())
    adaptation.learn(said(6), [AlignedWord(TIMER, 0, 47)])
    before = adaptation.factors
    adaptation.learn(np.tile(said(7) * junk, (9, 1)), [AlignedWord(TIMER, 48 * k, 48 * k + 47) for k in range(9)])
    assert np.array_equal(adaptation.factors, before)
    adaptation.learn(said(8), [AlignedWord(TIMER, 0, 47)])
    assert not np.array_equal(adaptation.factors, before)  # and it did no lasting harm


def test_words_too_short_or_none_teach_nothing():
    adaptation = Adaptation(english())
    adaptation.learn(said(9), [])
    adaptation.learn(said(9), [AlignedWord(TIMER, 3, 8)])
    assert np.array_equal(adaptation.factors, np.ones(CEPSTRA))


@pytest.mark.parametrize(
    ("read", "file"), [("_phones", "mdef"), ("_parameters", "means"), ("_weights", "sendump")], ids=str
)
def test_another_model_is_refused_by_name(read, file, tmp_path):
    path = tmp_path / file
    header = b"BMDF" if file == "mdef" else b"s3\nendhdr\n" if file == "means" else b""
    path.write_bytes(header + bytes(64))
    arguments = {"mdef": (), "means": (42,), "sendump": (42, 128)}[file]
    with pytest.raises(EngineFailed, match=f"{file} is not .*install"):
        getattr(gmm, read)(path, *arguments)
