"""The stock `openai` client, unchanged, against a running server: a spoken turn, a barge-in, typing, a tool, HTTP."""

import asyncio
import base64
import io
import wave
from dataclasses import replace
from functools import partial

import numpy as np
import openai
import pytest

from assistant.base.pcm import to_pcm16
from assistant.contracts import Prompt
from tests.contracts.subjects import local_llm
from tests.fakes.talk import World
from tests.fakes.web import LISTEN_16K, Site, run, serving

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a place",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
}


def stock(site: Site) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{site.http}/v1", api_key="any", max_retries=0)


async def collect(connection, last: str = "response.done") -> list:
    events = []
    async with asyncio.timeout(20):
        async for event in connection:
            events.append(event)
            if event.type == last:
                return events
    raise AssertionError("the connection ended early")


async def append(connection, pcm: np.ndarray) -> None:
    for start in range(0, len(pcm), 1600):
        await connection.input_audio_buffer.append(
            audio=base64.b64encode(to_pcm16(pcm[start : start + 1600])).decode()
        )


async def speak(connection, world: World, text: str, seconds: float = 0.8) -> None:
    await append(connection, world.asr.spoken(text, seconds))


async def silence(connection) -> None:
    await append(connection, np.zeros(19200, np.float32))


LISTEN = {"type": "realtime", "audio": {"input": {"format": LISTEN_16K, "transcription": {"model": "whisper-1"}}}}


def test_spoken_turn():
    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="gpt-realtime") as connection:
            await connection.session.update(session=LISTEN)
            await collect(connection, "session.updated")
            await speak(connection, site.world, "hello there friend")
            await silence(connection)
            events = await collect(connection)
        by_type = {event.type: event for event in events}
        heard = by_type["conversation.item.input_audio_transcription.completed"]
        assert heard.transcript == "hello there friend" and heard.usage.seconds > 0
        said = by_type["response.output_audio_transcript.done"].transcript
        assert said == "You said hello there friend."
        sound = b"".join(base64.b64decode(e.delta) for e in events if e.type == "response.output_audio.delta")
        assert len(sound) == 5 * 7200 * 2
        done = by_type["response.done"].response
        assert done.status == "completed" and done.output[0].content[0].transcript == said
        assert done.usage.output_tokens > 0

    run(story)


def test_barge_in_cuts_to_what_was_heard_and_the_model_knows():
    def mind(prompt: Prompt):
        if "last" in prompt.lines[-1].text:
            return [" ".join(line.text for line in prompt.lines if line.role == "assistant")]
        return ["one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"]

    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="gpt-realtime") as connection:
            await connection.session.update(session=LISTEN)
            await collect(connection, "session.updated")
            await speak(connection, site.world, "count to fifteen")
            await silence(connection)
            for _ in range(12):
                events = await collect(connection, "response.output_audio.delta")
            item_id = events[-1].item_id
            await speak(connection, site.world, "what was the last number")
            events = await collect(connection, "input_audio_buffer.speech_started")
            await connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=900)
            events = await collect(connection, "conversation.item.truncated")
            done = next(event.response for event in events if event.type == "response.done")
            assert done.status == "cancelled" and done.status_details.reason == "turn_detected"
            await connection.conversation.item.retrieve(item_id=item_id)
            events += await collect(connection, "conversation.item.retrieved")
            assert events[-1].item.content[0].transcript.split() == ["one", "two", "three"]
            await silence(connection)
            events += await collect(connection)
            assert not any(e.type == "response.output_audio.delta" and e.item_id == item_id for e in events)
            assert events[-1].response.output[0].content[0].transcript == "one two three"

    run(story, world=World(mind, speed=100.0))


def typed(text: str) -> dict:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def test_typed_turn_with_metadata():
    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="any-model") as connection:
            await connection.conversation.item.create(item=typed("good morning"))
            await connection.response.create(
                response={"output_modalities": ["text"], "metadata": {"client_event_id": "7"}}
            )
            events = await collect(connection)
        created = next(event for event in events if event.type == "response.created")
        assert created.response.metadata == {"client_event_id": "7"}
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "You said good morning."
        assert events[-1].response.output[0].content[0].text == "You said good morning."

    run(story)


async def say_it_twice(site: Site, extensions: str) -> list:
    async with stock(site) as client:
        options = {"model": "any-model", "extra_query": {"extensions": extensions}} if extensions else {"model": "any"}
        async with client.realtime.connect(**options) as connection:
            await connection.conversation.item.create(item=typed("good morning"))
            await connection.response.create(response={"output_modalities": ["text"], "answers": 2})
            events = await collect(connection)
            if extensions:
                events += await collect(connection)
    return events


def test_two_answers_of_one_state_for_those_who_ask_for_answers():
    async def story(site: Site) -> None:
        events = await say_it_twice(site, "answers")
        made = {event.response.id: event.response for event in events if event.type == "response.done"}
        assert [one.answer for one in made.values()] in ([0, 1], [1, 0])
        kept = next(one for one in made.values() if one.answer == 0)
        assert [one.conversation_id is None for one in made.values()] == [one.answer == 1 for one in made.values()]
        texts = dict.fromkeys(made, "")
        for event in events:
            if event.type == "response.output_text.delta":
                texts[event.response_id] += event.delta
        assert list(texts.values()) == ["You said good morning."] * 2
        added = [event.item.id for event in events if event.type == "conversation.item.added"]
        assert [item.id for item in kept.output] == added[-1:] and len(added) == 2

        [done] = [event.response for event in await say_it_twice(site, "") if event.type == "response.done"]
        assert not hasattr(done, "answer"), "a stock client, for which the field means nothing, gets one"

    run(story)


def test_tool_round_trip():
    def mind(prompt: Prompt):
        if prompt.lines[-1].role == "tool":
            return [f"It is {prompt.lines[-1].text}."]
        return [("weather", {"place": "Bern"})]

    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="gpt-realtime") as connection:
            await connection.session.update(session={"type": "realtime", "tools": [WEATHER]})
            await connection.conversation.item.create(item=typed("weather in Bern"))
            await connection.response.create()
            events = await collect(connection)
            call = events[-1].response.output[0]
            assert (call.type, call.name, call.arguments) == ("function_call", "weather", '{"place": "Bern"}')
            output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
            await connection.conversation.item.create(item=output)
            await connection.response.create()
            events = await collect(connection)
            assert events[-1].response.output[0].content[0].transcript == "It is sunny."

    run(story, world=World(mind, speed=100.0))


def test_chat_completions_whole_and_streamed():
    async def story(site: Site) -> None:
        async with stock(site) as client:
            messages = [{"role": "system", "content": "x"}, {"role": "user", "content": "good day"}]
            whole = await client.chat.completions.create(model="gpt-4o", messages=messages)
            assert whole.choices[0].message.content == "You said good day."
            assert whole.choices[0].finish_reason == "stop" and whole.usage.completion_tokens == 4
            stream = await client.chat.completions.create(
                model="gpt-4o", messages=messages, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
            assert chunks[0].choices[0].delta.role == "assistant"
            assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "You said good day."
            assert chunks[-2].choices[0].finish_reason == "stop" and chunks[-1].usage.total_tokens > 4
            assert len({chunk.id for chunk in chunks}) == 1

    run(story)


def test_chat_tools_whole_and_streamed():
    async def story(site: Site) -> None:
        async with stock(site) as client:
            function = {k: v for k, v in WEATHER.items() if k != "type"}
            asked = {
                "model": "m",
                "messages": [{"role": "user", "content": [{"type": "text", "text": "weather"}]}],
                "tools": [{"type": "function", "function": function}],
            }
            whole = await client.chat.completions.create(**asked)
            assert whole.choices[0].finish_reason == "tool_calls"
            assert whole.choices[0].message.tool_calls[0].function.arguments == '{"place": "Bern"}'
            chunks = [chunk async for chunk in await client.chat.completions.create(**asked, stream=True)]
            calls = [c.choices[0].delta.tool_calls[0] for c in chunks if c.choices[0].delta.tool_calls]
            assert [call.function.name for call in calls] == ["weather"]
            assert chunks[-1].choices[0].finish_reason == "tool_calls"

    run(story, world=World(lambda prompt: [("weather", {"place": "Bern"})]))


@pytest.mark.parametrize("form", ["pcm", "wav", "flac", "mp3", "opus"])
def test_speech(form):
    async def story(site: Site) -> None:
        async with stock(site) as client:
            answer = await client.audio.speech.create(
                model="tts-1", voice="alloy", input="one two three.", response_format=form
            )
            data = answer.read()
            samples = 3 * 7200
            if form == "pcm":
                assert len(data) == samples * 2
            elif form == "wav":
                with wave.open(io.BytesIO(data)) as file:
                    assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 1, 2)
                assert len(data) == 44 + samples * 2
            else:
                import soundfile

                sound, rate = soundfile.read(io.BytesIO(data))
                assert abs(len(sound) / rate - samples / 24000) < 0.15 and np.abs(sound).max() > 0.05
            assert site.world.tts.said == {}

    run(story)


def two_parts(site: Site) -> tuple[str, bytes]:
    """A file of two stretches of speech."""
    spoken = site.world.asr.spoken
    pcm = np.concatenate([spoken("first part", 1.0), np.zeros(16000), spoken("second", 0.8)])
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes(to_pcm16(pcm.astype(np.float32)))
    return "talk.wav", file.getvalue()


def test_transcriptions():
    async def story(site: Site) -> None:
        sound = two_parts(site)
        async with stock(site) as client:
            ask = client.audio.transcriptions.create
            assert (await ask(model="whisper-1", file=sound)).text == "first part second"
            assert await ask(model="whisper-1", file=sound, response_format="text") == "first part second\n"
            verbose = await ask(model="whisper-1", file=sound, response_format="verbose_json", language="en-GB")
            assert [segment.text for segment in verbose.segments] == ["first part", "second"]
            assert verbose.segments[1].start == pytest.approx(2.0 - 0.25, abs=0.07) and verbose.words is None
            assert "--> 00:00:01" in await ask(model="whisper-1", file=sound, response_format="srt")
            events = [event async for event in await ask(model="whisper-1", file=sound, stream=True)]
            assert events[-1].type == "transcript.text.done" and events[-1].text == "first part second"

    run(story)


def test_words_of_a_transcription_have_times_where_the_ears_know_them():
    async def story(site: Site) -> None:
        sound, ears = two_parts(site), site.world.asr
        async with stock(site) as client:
            ask = partial(client.audio.transcriptions.create, model="whisper-1", file=sound)
            words = partial(ask, timestamp_granularities=["word", "segment"], response_format="verbose_json")
            with pytest.raises(openai.BadRequestError, match="fake does not say when each word was spoken"):
                await words()
            ears.facts = replace(ears.facts, word_times=True)
            verbose = await words()
            assert [word.word for word in verbose.words] == ["first", "part", "second"]
            assert verbose.words[2].start == verbose.segments[1].start and len(verbose.segments) == 2
            with pytest.raises(openai.BadRequestError, match="needs response_format=verbose_json"):
                await ask(timestamp_granularities=["word"])

    run(story)


def test_a_language_that_the_ears_do_not_know_is_told():
    async def story(site: Site) -> None:
        sound, ears = two_parts(site), site.world.asr
        async with stock(site) as client:
            ask = partial(client.audio.transcriptions.create, model="whisper-1", file=sound)
            with pytest.raises(openai.BadRequestError, match="fake does not know the language 'de', only en"):
                await ask(language="de")
            ears.facts = replace(ears.facts, languages=())
            assert (await ask(language="de", response_format="verbose_json")).language == "de"

    run(story)


def test_errors_are_the_sdks_own():
    async def story(site: Site) -> None:
        async with stock(site) as client:
            with pytest.raises(openai.BadRequestError, match="aac"):
                await client.audio.speech.create(model="m", voice="v", input="x", response_format="aac")
            with pytest.raises(openai.BadRequestError, match="one pace"):
                await client.audio.speech.create(model="m", voice="v", input="x", speed=1.5)
            with pytest.raises(openai.BadRequestError, match="messages"):
                await client.chat.completions.create(model="m", messages=[])
            with pytest.raises(openai.BadRequestError, match="cannot be read"):
                await client.audio.transcriptions.create(model="m", file=("a.wav", b"not sound"))
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve("nothing")
            assert "local" in [model.id async for model in client.models.list()]
            site.world.llm.fail_after = 2
            with pytest.raises(openai.InternalServerError, match="fell over"):
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
            with pytest.raises(openai.APIError, match="fell over"):
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "hi"}], stream=True
                )
                _ = [chunk async for chunk in stream]

    run(story)


def test_talks_and_requests_of_one_key_are_of_one_realm_and_of_two_keys_of_two():
    realms = []

    def mind(prompt: Prompt):
        realms.append(prompt.realm)
        return ["Yes."]

    async def story(site: Site) -> None:
        for key in ("one", "two", "one"):
            client = openai.AsyncOpenAI(base_url=f"{site.http}/v1", api_key=key, max_retries=0)
            async with client, client.realtime.connect(model="any") as connection:
                await connection.session.update(session={"type": "realtime", "instructions": "Be brief."})
                await connection.conversation.item.create(item=typed("hello"))
                await connection.response.create(response={"output_modalities": ["text"]})
                await collect(connection)
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])

    run(story, world=World(mind))
    one, two = realms[0], realms[2]
    assert realms == [one, one, two, two, one, one] and one and two and one != two and "one" not in one


# ------------------------------------------------------------------- what is folded once, over the small model


def over_the_small_model(story) -> None:
    async def whole() -> None:
        async with asyncio.timeout(300), local_llm() as behind, serving(World(llm=behind.engine)) as site:
            await story(site)

    asyncio.run(whole())


async def ask(client: openai.AsyncOpenAI, messages: list[dict], **options):
    answer = await client.chat.completions.create(model="any", messages=messages, **options)
    return answer, answer.usage.prompt_tokens_details.cached_tokens


@pytest.mark.slow
def test_the_next_turn_of_a_chat_folds_only_what_is_new():
    async def story(site: Site) -> None:
        async with stock(site) as client, openai.AsyncOpenAI(base_url=f"{site.http}/v1", api_key="other") as other:
            messages: list[dict] = [{"role": "user", "content": "count to five"}]
            shared = 0
            for number in range(3):
                answer, cached = await ask(client, messages)
                assert cached == 0 if number == 0 else cached > shared
                shared = answer.usage.total_tokens  # and the end of the reply
                messages += [
                    {"role": "assistant", "content": answer.choices[0].message.content},
                    {"role": "user", "content": f"what is {number} plus {number}"},
                ]
            again, cached = await ask(client, messages[:-2])
            assert again.choices[0].message.content == answer.choices[0].message.content
            assert cached == answer.usage.prompt_tokens
            for expected in (0, cached):  # with another key: cold, and the same answer
                found, cached_there = await ask(other, messages[:-2])
                assert found.choices[0].message.content == answer.choices[0].message.content
                assert cached_there == expected

    over_the_small_model(story)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_several_answers_are_each_what_is_answered_alone(stream):
    messages = [{"role": "user", "content": "tell me a story"}]

    async def story(site: Site) -> None:
        async with stock(site) as client:
            options = {"temperature": 1.5, "max_tokens": 12}
            alone = [await ask(client, messages, seed=seed, **options) for seed in (7, 8, 9)]
            expected = [answer.choices[0].message.content for answer, _ in alone]
            assert len(set(expected)) == 3
            if stream:
                texts = ["", "", ""]
                chunks = await client.chat.completions.create(
                    model="any", messages=messages, n=3, seed=7, stream=True, **options
                )
                async for chunk in chunks:
                    for choice in chunk.choices:
                        texts[choice.index] += choice.delta.content or ""
            else:
                several, _ = await ask(client, messages, n=3, seed=7, **options)
                texts = [choice.message.content for choice in several.choices]
                assert several.usage.completion_tokens == sum(answer.usage.completion_tokens for answer, _ in alone)
            assert texts == expected

    over_the_small_model(story)
