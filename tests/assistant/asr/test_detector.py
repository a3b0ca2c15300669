"""The detector cuts the stream into whole blocks, whatever comes in, and tells speech from silence and noise."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import samplerate

from assistant.asr.detector import BLOCK_SAMPLES, SileroDetector


def sound(seconds: float, rms: float) -> np.ndarray:
    return (np.random.default_rng(3).standard_normal(int(16_000 * seconds)) * rms).astype(np.float32)


@pytest.mark.parametrize("raised", [False, True])
def test_blocks_cover_the_stream_in_order_for_any_push_size(raised):
    pcm = sound(1.0, 0.01)
    whole = SileroDetector().push(pcm, raised=raised)
    detector, pieces, start = SileroDetector(), [], 0
    for size in [1, 511, 512, 513, 7, 3000, 20_000]:
        pieces += detector.push(pcm[start : start + size], raised=raised)
        start += size
    assert pieces == whole
    assert [b.start_sample for b in whole] == list(range(0, len(pcm) - BLOCK_SAMPLES + 1, BLOCK_SAMPLES))
    assert whole[0].end_sample == BLOCK_SAMPLES


def test_silence_and_faint_noise_are_not_speech():
    for pcm in (np.zeros(16_000, np.float32), sound(1.0, 0.002)):
        assert max(b.probability for b in SileroDetector().push(pcm, raised=True)) < 0.35


def test_reset_begins_a_new_stream():
    detector = SileroDetector()
    first = detector.push(sound(0.5, 0.05), raised=True)
    detector.push(sound(0.01, 0.05))
    detector.reset()
    assert detector.push(sound(0.5, 0.05), raised=True) == first


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 30.0])
def test_broken_samples_do_no_harm(bad):
    pcm = sound(0.2, 0.01)
    pcm[100:2000] = bad
    assert all(0.0 <= b.probability <= 1.0 for b in SileroDetector().push(pcm))


def test_speech_is_found(spoken):
    blocks = SileroDetector().push(
        np.concatenate([np.zeros(8_000, np.float32), spoken("set a timer for five minutes")])
    )
    active = [b for b in blocks if b.probability > 0.5]
    assert len(active) > 20
    assert 8_000 - 2 * BLOCK_SAMPLES <= active[0].start_sample <= 8_000 + 6_400


def test_a_raised_voice_is_speech_where_it_is_listened_for(two_cities):
    """Read two and a half times as fast and as high, Dickens is none to the network as it is."""
    shout = samplerate.resample(two_cities[: 8 * 16_000], 1 / 2.6, "sinc_fastest").astype(np.float32)
    plain, raised = ([b.probability > 0.5 for b in SileroDetector().push(shout, raised=how)] for how in (False, True))
    assert not any(plain) and np.mean(raised) > 0.5


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux, which lists the threads of a process")
def test_the_network_takes_one_thread_and_leaves_the_others_theirs():
    script = """
import os, torch, numpy as np
from assistant.asr.detector import SileroDetector
threads, detector = [], SileroDetector()
def count(): threads.append(len(os.listdir("/proc/self/task")))
count()
detector.push(np.zeros(512 * 4, np.float32))
count()
torch.set_num_threads(4)
torch.ones(512, 512) @ torch.ones(512, 512)
count()
print(*threads, os.environ.get("OMP_THREAD_LIMIT"))
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    before, behind, others, limit = done.stdout.split()
    assert behind == before and int(others) > int(behind) and limit == str(os.environ.get("OMP_THREAD_LIMIT"))
