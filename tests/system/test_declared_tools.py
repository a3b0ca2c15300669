"""A client declares a tool that the shipped model has never seen: its prompt is the one that training writes."""

import json
from pathlib import Path

import openai
from tokenizers import Tokenizer

import llm_engine
from assistant.contracts import Prompt
from assistant.events import ServerVad, Settings
from assistant.llm.small import SmallMind
from assistant.tools.builtin import TRAINED_TOOLS, BuiltinTools, builtin_tools
from assistant.tools.kept import Kept
from llm_engine.toolcalls import ParsedCall
from recipes.chatml import TalkEncoder, call_text
from recipes.texts.scene import Declaration, Parameter, Talk, TalkTurn
from recipes.texts.tools import PERSONAS, TOOL_NAMES
from tests.fakes.talk import World
from tests.fakes.web import Site, run

TINY = Path(llm_engine.__file__).parent / "tiny"
DECLARED = Declaration(
    "set_light", "Switch a light on or off.",
    (Parameter("room", values=("kitchen", "living_room")), Parameter("on", "boolean"),
     Parameter("level", "integer", required=False)),
)  # fmt: skip
SET_LIGHT = {"type": "function", **DECLARED.spec()["function"]}
TURNS = [
    TalkTurn("user", "switch on the light in the kitchen"),
    TalkTurn("assistant", "", ("set_light", {"room": "kitchen", "on": "true"})),
    TalkTurn("tool", '{"ok": true}'),
    TalkTurn("assistant", "Done."),
]


def test_a_declared_tool_stands_in_the_prompt_as_in_training_and_its_calls_are_read():
    prompts: list[Prompt] = []

    def mind(prompt: Prompt):
        prompts.append(prompt)
        return ["Done."] if prompt.lines[-1].role == "tool" else [("set_light", {"room": "kitchen", "on": True})]

    async def story(site: Site) -> None:
        async with (
            openai.AsyncOpenAI(base_url=f"{site.http}/v1", api_key="none") as client,
            client.realtime.connect(model="any") as connection,
        ):
            await connection.session.update(session={"type": "realtime", "tools": [SET_LIGHT]})
            said = [{"type": "input_text", "text": TURNS[0].text}]
            await connection.conversation.item.create(item={"type": "message", "role": "user", "content": said})
            await connection.response.create(response={"output_modalities": ["text"]})
            call = (await done(connection)).output[0]
            assert json.loads(call.arguments) == {"room": "kitchen", "on": True}
            output = {"type": "function_call_output", "call_id": call.call_id, "output": '{"ok": true}'}
            await connection.conversation.item.create(item=output)
            await connection.response.create(response={"output_modalities": ["text"]})
            assert (await done(connection)).output[0].content[0].text == "Done."

    async def done(connection):
        async for event in connection:
            if event.type == "response.done":
                return event.response

    persona = PERSONAS["Ada"]
    settings = Settings(persona="ada", turn_detection=ServerVad(), instructions=persona)
    run(story, world=World(mind, settings, tools=household))

    encoder = TalkEncoder(Tokenizer.from_file(str(TINY / "tokenizer.json")))
    talk = Talk(persona, (*TOOL_NAMES, DECLARED), TURNS)
    assert len(prompts) == 2
    for prompt, turn in zip(prompts, (1, 3), strict=True):
        assert laid_out(prompt) == encoder.prompt(talk, turn)
    assert len(encoder.system(talk)) - len(encoder.system(Talk(persona, TOOL_NAMES))) == 38

    calls = SmallMind(TINY).language().call_stream(prompts[0])
    assert calls.push(call_text(*TURNS[1].call)) == [ParsedCall("set_light", {"room": "kitchen", "on": True})]


def household():
    return builtin_tools(BuiltinTools(Kept(), lambda: None, {"ada": "Ada"}, lambda: "ada"), names=TRAINED_TOOLS)


def laid_out(prompt: Prompt) -> list[int]:
    """A prompt's tokens as the product lays it out for the shipped model, the reply's opening included."""
    language = SmallMind(TINY).language()
    layout, text = language.layout, ""
    for line in prompt.lines:
        if line.role == "assistant":
            text += layout.opening + layout.reply(line) + layout.closing
        else:
            text += layout.turn(line)
    return list(language.encode(layout.system(prompt.system, prompt.tools) + text + layout.opening))
