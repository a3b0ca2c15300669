"""One turn's timeline: its parts follow each other, and a full disk costs only the line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.contracts import Cost
from assistant.telemetry.trace import TraceLog, TurnTrace
from assistant.telemetry.trace import to_json as trace_json


@given(st.lists(st.tuples(st.floats(0, 3), st.lists(st.floats(0, 4000), max_size=3)), max_size=8))
def test_parts_follow_each_other_and_sum_to_the_total(stretches):
    trace, now = TurnTrace(1, 10.0), 10.0
    for index, (seconds, costs) in enumerate(stretches):
        now += seconds
        trace.mark(f"part {index}", now, [Cost(f"cost {index}.{i}", ms) for i, ms in enumerate(costs)])
    timeline = trace.timeline("r")
    assert timeline.total_ms == pytest.approx((now - 10.0) * 1000, abs=1e-6)
    at = 0.0
    for part in timeline.parts:
        assert part.start_ms == pytest.approx(at, abs=1e-6) and part.ms >= 0
        at += part.ms


def test_marks_after_the_first_sound_change_nothing_but_the_player_adds_its_part():
    trace = TurnTrace(1, 0.0, spoken=True)
    trace.mark("wait", 0.5)
    trace.committed = 0.5
    trace.mark("work", 0.8)
    trace.close(0.8)
    trace.mark("late", 2.0)
    trace.played(0.85)
    timeline = trace.timeline("r")
    assert timeline.total_ms == pytest.approx(850) == timeline.figures["voice_to_voice_ms"]
    assert timeline.figures["ttfa_ms"] == pytest.approx(300)


def test_timelines_are_lines_and_a_full_disk_costs_only_the_line(tmp_path):
    trace = TurnTrace(3, 1.0)
    trace.mark("all", 1.25)
    log = TraceLog(tmp_path / "logs" / "turns.jsonl", limit_bytes=300)
    for _ in range(8):
        log.write(trace.timeline("r"), {"talk": "t"})
    lines = (tmp_path / "logs" / "turns.jsonl").read_text().splitlines()
    assert lines and '"total_ms": 250.0' in lines[0]
    assert (tmp_path / "logs" / "turns.jsonl.1").exists()
    assert trace_json(trace.timeline("r"))["parts"] == [{"name": "all", "start_ms": 0.0, "ms": 250.0}]
    (tmp_path / "gone").write_text("")
    broken = TraceLog(tmp_path / "there" / "x.jsonl")
    (tmp_path / "there").rmdir()
    broken.write(trace.timeline("r"))
