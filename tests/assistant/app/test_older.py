"""Parked talks of the version before."""

import json

import torch

from assistant.app.older import take_over
from assistant.llm.talk_state import TalkState
from capsules import Capsule, ExecContext, Fingerprint
from capsules.prefix import StateKey
from capsules.registry import Budgets, Registry


def test_parked_words_are_found_again_and_older_voices_let_go_with_a_sentence(tmp_path):
    facts = {"tape": [[0, [1, 2]], [1, [3]]], "written": {"r.0": [[3], [2], "hi", 0]}, "dropped": 1, "key": "n-1"}
    (tmp_path / "conv_1.tape").write_text(json.dumps(facts))
    registry = Registry.standard(ExecContext("cpu"), Budgets(host_bytes=1 << 20), lambda: 0.0)
    capsule = Capsule("", "tts", 1, Fingerprint(()), (), {"talk": {}}, {"t": torch.zeros(4)})
    registry.put(capsule, StateKey("voice"), name="talk/conv_1/voice")
    registry.put(capsule, StateKey("voice"), name="voice/tiny/ada/x")
    told = []
    take_over(tmp_path, registry, told.append)
    state = TalkState.from_json(json.loads((tmp_path / "conv_1.llm").read_text()))
    assert state.log.ids == (1, 2, 3) and state.written["r.0"].text == "hi" and state.dropped == 1
    assert [one.name for one in registry.listing()] == ["voice/tiny/ada/x"] and len(told) == 1
