"""Parked talks of the version before."""

import json

import torch

from assistant.app.older import take_over
from assistant.events import Message, TextPart
from assistant.llm.talk_state import TalkState
from assistant.talk.keeping import resumed
from capsules import Capsule, ExecContext, Fingerprint
from capsules.journal import Journals
from capsules.prefix import StateKey
from capsules.registry import Budgets, Registry

SAID = {"type": "message", "id": "a", "role": "user", "status": "completed", "content": [{"text": "hi"}]}


def test_parked_talks_go_on_in_words_and_tokens_and_older_voices_are_let_go_with_a_sentence(tmp_path, caplog):
    kept = {"note": [[1, "milk", "", None, ""]]}
    (tmp_path / "conv_1.json").write_text(json.dumps({"items": [SAID], "kept": kept}))
    facts = {"tape": [[0, [1, 2]], [1, [3]]], "written": {"r.0": [[3], [2], "hi", 0]}, "dropped": 1, "key": "n-1"}
    (tmp_path / "conv_1.llm").write_text(json.dumps(facts))
    (tmp_path / "conv_1.tts").write_text("{}")
    (tmp_path / "conv_2.json").write_text("[{")
    registry = Registry.standard(ExecContext("cpu"), Budgets(host_bytes=1 << 20), lambda: 0.0)
    capsule = Capsule("", "tts", 1, Fingerprint(()), (), {"talk": {}}, {"t": torch.zeros(4)})
    registry.put(capsule, StateKey("voice"), name="talk/conv_1/tts")
    registry.put(capsule, StateKey("voice"), name="voice/tiny/ada/x")
    told = []
    take_over(tmp_path, Journals(tmp_path), registry, told.append)
    journal = Journals(tmp_path).open("conv_1")
    talk = resumed(journal)
    assert talk.items == (Message("a", "user", (TextPart("hi"),)),) and journal.table("kept") == kept
    state = TalkState.from_rows(journal.table("llm"))
    assert state.log.ids == (1, 2, 3) and state.written["r.0"].text == "hi" and state.let_go.lines == 1
    assert [one.name for one in registry.listing()] == ["voice/tiny/ada/x"] and len(told) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conv_1.journal", "conv_2.json"]
    assert "conv_2.json was kept by the version before and cannot be read" in caplog.text
