"""Channels, clocks, sound, settings, personas, tools, the player: the parts a talk is made of."""

import asyncio
import datetime as dt
import json
import random
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.app.config import Config, choose_profile, load_config, offer
from assistant.base.channel import Channel
from assistant.base.clock import LoopClock, SampleClock
from assistant.base.errors import AssistantError, ChannelClosed, EngineFailed, SettingError, ToolError
from assistant.base.pcm import (
    Resampler,
    fade_out,
    from_alaw,
    from_pcm16,
    from_ulaw,
    read_sound,
    resample,
    rms,
    to_alaw,
    to_pcm16,
    to_ulaw,
    write_wav,
)
from assistant.device.context import open_context
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread
from assistant.local.player import DUCKED, FADE_SAMPLES, Player
from assistant.personas import load_personas, read_persona
from assistant.tools.builtin import TRAINED_TOOLS, BuiltinTools, builtin_tools
from assistant.tools.kept import Kept
from assistant.tools.registry import ToolRegistry, describe
from recipes.texts.tools import PARAMETERS, PERSONAS
from tests.fakes.loop import Stuck, run

# ------------------------------------------------------------------------------------- channel, clock


def test_a_full_channel_makes_its_sender_wait_and_a_closed_one_gives_what_is_left():
    async def play():
        channel: Channel[int] = Channel(2)
        log = []

        async def send():
            for i in range(4):
                await channel.send(i)
                log.append((i, LoopClock().now()))
            channel.close()

        task = asyncio.ensure_future(send())
        await asyncio.sleep(1)
        got = [await channel.receive()]
        await asyncio.sleep(1)
        got += [item async for item in channel]
        await task
        with pytest.raises(ChannelClosed):
            await channel.send(9)
        assert not channel.offer(9)
        return log, got

    log, got = run(play())
    assert log == [(0, 0), (1, 0), (2, 1), (3, 2)] and got == [0, 1, 2, 3]


def test_a_cancelled_waiter_passes_its_turn_on():
    async def play():
        channel: Channel[int] = Channel(1)
        first, second = (asyncio.ensure_future(channel.receive()) for _ in range(2))
        await asyncio.sleep(0)
        channel.offer(1)
        first.cancel()
        assert await second == 1

    run(play())


def test_the_virtual_loop_tells_a_deadlock():
    async def forever():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck):
        run(forever())


def test_samples_have_moments():
    clock = SampleClock(16_000)
    clock.advance(16_000, 5.0)
    assert clock.moment_of(8_000) == 4.5 and clock.moment_of(99_000) == 5.0 and clock.ms == 1000


# --------------------------------------------------------------------------------------------- sound


@given(st.binary(max_size=400).filter(lambda data: len(data) % 2 == 0))
def test_pcm16_comes_back(data):
    assert np.array_equal(from_pcm16(to_pcm16(from_pcm16(data))), from_pcm16(to_pcm16(from_pcm16(data))))
    assert np.abs(from_pcm16(to_pcm16(from_pcm16(data))) - from_pcm16(data)).max(initial=0) <= 1 / 32767


def test_sound_that_is_no_number_is_silence():
    data = to_pcm16(np.array([np.nan, np.inf, -np.inf, 2.0, -2.0], np.float32))
    assert np.frombuffer(data, "<i2").tolist() == [0, 32767, -32767, 32767, -32767]


@pytest.mark.parametrize(("there", "back"), [(to_ulaw, from_ulaw), (to_alaw, from_alaw)])
def test_companded_sound_keeps_its_shape(there, back):
    codes = bytes(range(256))
    assert np.allclose(back(there(back(codes))), back(codes), atol=1e-4)  # every code means itself
    sine = (0.5 * np.sin(np.arange(4000) / 9)).astype(np.float32)
    assert rms(back(there(sine)) - sine) < 0.01 * rms(sine) * 4


@pytest.mark.parametrize("rate", [8_000, 24_000, 44_100, 48_000])
def test_a_stream_is_resampled_like_the_whole(rate):
    sine = np.sin(np.arange(rate) * 440 * 2 * np.pi / rate).astype(np.float32)
    stream = Resampler(rate, 16_000)
    parts = [stream.feed(part) for part in np.array_split(sine, 37)] + [stream.feed(sine[:0], last=True)]
    whole = np.concatenate(parts)
    assert abs(whole.size - 16_000) <= 48  # 3 ms stay in the filter
    middle = resample(sine, rate, 16_000)[4000:8000]
    assert np.abs(whole[4000:8000] - middle).max() < 0.02


def test_fades_and_files(tmp_path):
    faded = fade_out(np.ones(100, np.float32), 50)
    assert faded[:50].min() == 1 and faded[-1] < 1e-6
    write_wav(tmp_path / "a.wav", faded, 24_000)
    pcm, rate = read_sound(tmp_path / "a.wav")
    assert rate == 24_000 and np.abs(pcm - faded).max() < 1e-4
    (tmp_path / "b.wav").write_bytes(b"nothing")
    with pytest.raises(AssistantError, match=r"b\.wav cannot be read"):
        read_sound(tmp_path / "b.wav")


# ------------------------------------------------------------------------------------------- settings


def test_flags_win_over_environment_over_file_over_defaults(tmp_path):
    (tmp_path / "config.toml").write_text('port = 1\nsessions = 2\nhost = "h"\n')
    config = load_config({"port": 3, "host": None}, {"ASSISTANT_HOME": str(tmp_path), "ASSISTANT_PORT": "2",
                                                     "ASSISTANT_SESSIONS": "7"})  # fmt: skip
    assert (config.port, config.sessions, config.host, config.persona) == (3, 7, "h", "ada")
    assert config.origin("port") == "--port" and config.origin("persona") == "default"
    assert config.origin("sessions") == "environment variable ASSISTANT_SESSIONS"
    assert config.origin("host") == str(tmp_path / "config.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [("port = true", "port must be a whole number"), ("sessions = 0", "sessions must be a whole number, 1 or more"),
     ("port = 65536", "port must be a whole number, 0 to 65535, not 65536"), ("threads = -1", "0 to 1024, not -1"),
     ('profile = "huge"', "profile must be one of 'auto', 'tiny'"), ("nonsense = 1", "no setting 'nonsense'"),
     ("port = [", "cannot be read")],
)  # fmt: skip
def test_wrong_settings_are_refused_with_their_origin(tmp_path, text, words):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(SettingError, match=words) as raised:
        load_config({}, {"ASSISTANT_HOME": str(tmp_path)})
    assert "config.toml" in str(raised.value)


def test_profiles_follow_what_the_machine_has():
    gib = 1 << 30
    assert choose_profile("auto", 0, ()).name == "tiny"
    assert choose_profile("auto", 48 * gib, ("desk", "desk-9b", "desk-27b")).name == "desk-9b"
    assert choose_profile("auto", 48 * gib, ()).name == "tiny" and offer(48 * gib).name == "desk-9b"
    assert choose_profile("desk", 0, ()).name == "desk" and offer(0) is None
    assert Config.__dataclass_params__.frozen


def test_shipped_personas_are_those_the_small_model_learnt(tmp_path):
    personas = load_personas(tmp_path / "none")
    assert {one.title: one.instructions for one in personas.values()} == PERSONAS
    (tmp_path / "eve.toml").write_text('instructions = "You are Eve."\n[sampling]\ntemperature = 0.5\n')
    eve = load_personas(tmp_path)["eve"]
    assert (eve.title, eve.sampling.temperature, eve.tools) == ("eve", 0.5, None)
    for wrong in ('title = "x"', 'instructions = 3', 'instructions = "a"\nvoise = "b"', "[sampling]\nheat = 1"):
        with pytest.raises(SettingError, match=r"bad\.toml"):
            read_persona("bad", wrong, "bad.toml")


# ---------------------------------------------------------------------------------------------- tools


def call(registry, name, **arguments):
    return run(registry.call(name, json.dumps(arguments)))


def test_hints_become_a_schema_and_mistakes_become_words():
    async def order(item: str, count: int = 1, size: float | None = None) -> str:
        "Order a thing. \n\n Not told."
        return f"{count} {item} {size}"

    spec = describe(order)
    assert spec.description == "Order a thing."
    assert spec.parameters == {
        "type": "object", "required": ["item"],
        "properties": {"item": {"type": "string"}, "count": {"type": "integer"}, "size": {"type": "number"}},
    }  # fmt: skip
    registry = ToolRegistry()
    registry.tool(order)
    assert call(registry, "order", item="tea", count="2", size=1).text == "2 tea 1.0"
    for arguments, words in [("{", "not JSON"), ("[]", "must be a JSON object"), ("{}", "needs item"),
                             ('{"item": "a", "x": 1}', "it got x"), ('{"item": "a", "count": 1.5}', "must be integer"),
                             ("[" * 100_000, "not JSON")]:  # fmt: skip
        assert words in json.loads(run(registry.call("order", arguments)).text)["error"]
    assert "there is no tool 'nap'" in call(registry, "nap").text
    with pytest.raises(ToolError, match="no type hint"):
        describe(lambda x: x)
    with pytest.raises(ToolError, match="two tools"):
        registry.tool(order)


def test_slow_and_broken_tools_answer_in_words():
    async def slow() -> str:
        await asyncio.sleep(100)
        return ""

    async def broken() -> str:
        raise RuntimeError("out of order")

    registry = ToolRegistry()
    registry.tool(slow, timeout_s=2.0)
    registry.tool(broken)
    assert "within 2 s" in call(registry, "slow").text and "out of order" in call(registry, "broken").text


NOON = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)


def test_built_in_tools_are_those_the_small_model_learnt():
    household = BuiltinTools(Kept(), lambda: NOON, {"ada": "Ada"}, lambda: "ada")
    registry = builtin_tools(household, limited=True)
    assert tuple(PARAMETERS) == TRAINED_TOOLS == tuple(spec.name for spec in registry.specs)
    for spec in registry.specs:
        learnt = PARAMETERS[spec.name]
        assert list(spec.parameters["properties"]) == [name.rstrip("?") for name in learnt]
        assert spec.parameters["required"] == [name for name in learnt if not name.endswith("?")]


def household(said, undoing=dict):
    names = {"ada": "Ada", "ben": "Ben"}
    loop = asyncio.get_running_loop()

    def now():
        return NOON + dt.timedelta(seconds=loop.time())

    return builtin_tools(BuiltinTools(Kept(said.append, now), now, names, lambda: "ada", undoing, random.Random(1)))


def test_a_day_with_the_built_in_tools():
    said = []

    async def play():
        tools = household(said)
        script = [
            ("get_time", {}, "12:00 pm"), ("get_date", {"day": "tomorrow"}, "Saturday, November 21, 2026"),
            ("days_until", {"day": "christmas"}, "35 days"), ("list_timers", {}, "no timer is running"),
            ("set_timer", {"duration": "5 minutes", "label": "pasta"}, "pasta, 5 minutes"),
            ("set_timer", {"duration": "90 seconds"}, "1 minute 30 seconds"),
            ("list_timers", {}, "pasta, 5 minutes; 1 minute 30 seconds"),
            ("change_timer", {"duration": "2 minutes"}, "2 minutes"),
            ("cancel_timer", {"label": "tea"}, "no timer is running"),
            ("set_alarm", {"time": "7:30 am"}, "7:30 am"), ("list_alarms", {}, "7:30 am"),
            ("cancel_alarm", {"time": "7:30"}, "7:30 am"), ("list_alarms", {}, "no alarm is set"),
            ("set_reminder", {"text": "call Anna", "time": "in 10 minutes"}, "call Anna, in 10 minutes"),
            ("list_reminders", {}, "call Anna, in 10 minutes"), ("calculate", {"expression": "12 * 8"}, "96"),
            ("convert", {"value": "10", "unit": "miles", "to": "kilometers"}, "10 miles is 16.09 kilometers"),
            ("spell", {"word": "cat"}, "C, A, T"), ("list_add", {"items": "milk, eggs and bread"}, "milk, eggs, bread"),
            ("list_remove", {"items": "eggs"}, "eggs"), ("list_remove", {"items": "tea"}, "tea is not on the list"),
            ("list_read", {}, "milk, bread"), ("list_clear", {}, "cleared"), ("list_read", {}, "empty"),
            ("note_read", {}, "no notes"), ("note_add", {"text": "buy flowers"}, "noted"),
            ("note_read", {}, "buy flowers"), ("undo", {}, "ok"), ("switch_persona", {}, "Ben"),
            ("switch_persona", {"name": "Zoe"}, "nobody here is called Zoe"),
            ("calculate", {"expression": "1/0"}, '{"error": "nothing can be divided by zero"}'),
            ("roll_die", {"sides": "1"}, '{"error": "a die has 2 to 1000 sides"}'),
        ]  # fmt: skip
        for name, arguments, answer in script:
            assert (await tools.call(name, json.dumps(arguments))).text == answer, name
        assert (await tools.call("flip_coin", "{}")).text in ("heads", "tails")
        assert (await tools.call("switch_persona", '{"name": "ben"}')).argument == "ben"
        await asyncio.sleep(3600)

    run(play())
    assert said == ["Your timer is done.", "Your pasta timer is done.", "Remember: call Anna."]


def test_nothing_goes_off_after_the_talk():
    said = []

    async def play():
        tools = household(said)
        await tools.call("set_timer", '{"duration": "1 minute"}')
        await tools.call("set_alarm", '{"time": "12:30 pm"}')
        tools.kept.close()
        await asyncio.sleep(7200)

    run(play())
    assert said == []


@pytest.mark.parametrize(
    ("before", "did", "told"),
    [
        ([], [("set_timer", {"duration": "5 minutes"})], "The timer of 5 minutes is stopped."),
        (
            [("set_timer", {"duration": "5 minutes", "label": "tea"})], [("change_timer", {"duration": "10 minutes"})],
            "The tea timer of 10 minutes is stopped. The tea timer of 5 minutes is running again.",
        ),
        ([("set_alarm", {"time": "7:30 am"})], [("cancel_alarm", {})], "The alarm at 7:30 am is set again."),
        ([], [("set_reminder", {"text": "call", "time": "at 5 pm"})], "The reminder, call, at 5 pm, is gone."),
        (
            [("list_add", {"items": "tea"})],
            [("list_add", {"items": "milk, eggs"}), ("list_remove", {"items": "tea"}), ("note_add", {"text": "a"})],
            "I took milk and eggs off the shopping list. I put tea on the shopping list again. The note, a, is gone.",
        ),
        ([("list_add", {"items": "tea"})], [("list_clear", {})], "I put tea on the shopping list again."),
        ([], [("get_time", {}), ("calculate", {"expression": "1/0"}), ("cancel_timer", {})], ""),
    ],
)  # fmt: skip
def test_what_tools_did_is_taken_back_and_told(before, did, told):
    async def play():
        tools = household([], lambda: changed)
        for name, arguments in before:
            await tools.call(name, json.dumps(arguments))
        kept, changed = tools.kept.to_json(), {}
        for name, arguments in did:
            result = await tools.call(name, json.dumps(arguments))
            for slot, rows in json.loads(json.dumps(result.before)).items():
                changed.setdefault(slot, rows)
        answer = await tools.call("undo", "{}")
        assert (answer.effect, answer.say) == ("undo", f"Okay, I took that back. {told}" if told else None)
        assert bool(told) == (tools.kept.to_json() != kept)
        tools.kept.put_back(changed)
        assert tools.kept.to_json() == kept and tools.kept.told(changed) == ""
        tools.kept.close()

    run(play())


def test_a_timer_that_is_set_back_goes_off_at_its_own_time_and_never_twice():
    said = []

    async def play():
        tools = household(said)
        loop = asyncio.get_running_loop()
        await tools.call("set_timer", '{"duration": "5 minutes", "label": "tea"}')
        changed = (await tools.call("change_timer", '{"duration": "1 hour"}')).before
        await tools.call("set_timer", '{"duration": "1 minute", "label": "egg"}')
        await asyncio.sleep(120)
        assert said == ["Your egg timer is done."]
        tools.kept.put_back(changed)
        await asyncio.sleep(240)
        assert said == ["Your egg timer is done.", "Your tea timer is done."] and loop.time() == 360
        tools.kept.put_back(changed)
        await asyncio.sleep(7200)
        assert len(said) == 2 and not tools.kept.rows("timer")

    run(play())


def test_what_is_kept_goes_on_and_what_went_off_meanwhile_is_told():
    said = []

    async def play():
        first = household(said)
        await first.call("set_timer", '{"duration": "5 minutes"}')
        await first.call("set_timer", '{"duration": "1 hour", "label": "tea"}')
        await first.call("set_reminder", '{"text": "call", "time": "in 1 minute"}')
        await first.call("note_add", '{"text": "flowers"}')
        await asyncio.sleep(90)
        stored = json.loads(json.dumps(first.kept.to_json()))
        first.kept.close()
        await asyncio.sleep(600)
        assert said == ["Remember: call."]
        second = household(said)
        second.kept.resume(stored)
        await asyncio.sleep(1)
        assert said == ["Remember: call.", "Your timer is done."]
        assert (await second.call("list_timers", "{}")).text == "tea, 48 minutes 29 seconds"
        assert (await second.call("note_read", "{}")).text == "flowers"
        await second.call("note_add", '{"text": "more"}')
        assert len({row.serial for slot in ("note", "timer", "reminder") for row in second.kept.rows(slot)}) == 4
        await asyncio.sleep(7200)
        assert said[2:] == ["Your tea timer is done."]

    run(play())


# --------------------------------------------------------------------------------------------- player


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 900)), max_size=8),
    st.lists(st.integers(1, 700), max_size=12),
)
def test_what_is_taken_is_what_was_put_in_order(put, taken):
    player = Player()
    for index, (item, samples) in enumerate(put):
        player.put(item, np.full(samples, (index + 1) / 10, np.float32))
    wanted = np.concatenate([np.full(n, (i + 1) / 10, np.float32) for i, (_, n) in enumerate(put)] or [np.zeros(0)])
    got = np.concatenate([player.take(n) for n in taken] or [np.zeros(0)])
    n = min(wanted.size, got.size)
    assert np.array_equal(got[:n], wanted[:n]) and not got[n:].any()
    heard = sum(player.heard_samples(item) for item in "ab")
    assert heard == n


def test_stopping_fades_and_says_what_was_heard():
    player = Player(latency_samples=100)
    player.put("a", np.ones(10_000, np.float32))
    player.take(2_000)
    assert player.current == "a" and player.heard_samples("a") == 1_900
    assert player.stop() == "a" and player.stop() == ""
    tail = player.take(2_000)
    assert tail[0] == 1 and tail[FADE_SAMPLES - 1] == 0 and not tail[FADE_SAMPLES:].any()
    assert player.heard_samples("a") == 2_000 and player.current is None and player.stop() is None


def test_ducking_glides():
    player = Player()
    player.put("a", np.ones(5_000, np.float32))
    player.duck()
    low = player.take(1_000)
    assert low[0] == 1 and low[-1] == np.float32(DUCKED) and np.abs(np.diff(low)).max() < 0.01
    player.unduck()
    assert player.take(1_000)[-1] == 1 and player.heard_samples("a") == 2_000


# ---------------------------------------------------------------------------------------- the thread


def counted(n, log, name):
    for i in range(n):
        log.append((name, i))
        yield i


def with_cohost(play):
    async def inside():
        engine_thread = EngineThread()
        engine_thread.start()
        try:
            return await asyncio.wait_for(play(engine_thread), 30)
        finally:
            engine_thread.stop()
            await asyncio.to_thread(engine_thread.join)

    return asyncio.run(inside())


def test_results_come_in_order_and_errors_come_through():
    async def play(engine_thread):
        log = []
        assert [i async for i in engine_thread.each(EngineKind.LLM, lambda: counted(5, log, "a"))] == [0, 1, 2, 3, 4]

        def broken():
            yield 1
            raise ZeroDivisionError("so it is")

        got = []
        with pytest.raises(EngineFailed, match="ZeroDivisionError: so it is"):
            async for i in engine_thread.each(EngineKind.LLM, broken):
                got.append(i)
        assert got == [1] and await engine_thread.call(EngineKind.TTS, lambda: 7) == 7

    with_cohost(play)


def test_leaving_stops_before_the_next_step_and_lets_go():
    async def play(engine_thread):
        log, closed = [], []

        def endless():
            try:
                while True:
                    log.append(len(log))
                    yield len(log)
            finally:
                closed.append(True)

        async with engine_thread.job(EngineKind.LLM, endless) as job:
            async for i in job.results():
                if i >= 3:
                    break
        count = len(log)
        assert closed and engine_thread.waiting == 0
        await engine_thread.call(EngineKind.LLM, lambda: None)
        assert len(log) == count

    with_cohost(play)


def test_one_lane_works_in_order_and_a_cancelled_job_never_begins():
    async def play(engine_thread):
        log = []

        async def collect(name, n):
            return [i async for i in engine_thread.each(EngineKind.LLM, lambda: counted(n, log, name))]

        first, second = asyncio.ensure_future(collect("a", 50)), asyncio.ensure_future(collect("b", 5))
        third = asyncio.ensure_future(collect("c", 5))
        await asyncio.sleep(0)
        third.cancel()
        await asyncio.gather(first, second)
        names = [name for name, _ in log]
        assert names.index("b") == 50 and "c" not in names[:50]
        with pytest.raises(asyncio.CancelledError):
            await third
        assert engine_thread.waiting == 0

    with_cohost(play)


def test_work_after_the_end_is_refused():
    async def play(engine_thread):
        engine_thread.stop()
        with pytest.raises(EngineFailed, match="shut down"):
            await engine_thread.call(EngineKind.LLM, lambda: 1)

    with_cohost(play)


@pytest.mark.parametrize("kernels", ["auto", "torch", "compiled"])
def test_without_a_compiler_only_who_asks_for_kernels_is_refused(kernels, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    if kernels == "compiled":
        with pytest.raises(AssistantError, match=r"--kernels compiled: no C\+\+ compiler.*apt install"):
            open_context("cpu", 0, kernels, tmp_path)
    else:
        assert " kernels " not in open_context("cpu", 0, kernels, tmp_path).describe()


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here; install g++ to un-skip")
def test_kernels_are_used_where_they_were_measured_and_can_be_built(monkeypatch, tmp_path):
    for machine, used in [("x86_64", True), ("riscv64", False)]:
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        monkeypatch.setattr("platform.system", lambda: "Linux")
        assert (" kernels " in open_context("cpu", 0, "auto", tmp_path).describe()) is used
    assert " kernels " not in open_context("cpu", 0, "torch", tmp_path).describe()
