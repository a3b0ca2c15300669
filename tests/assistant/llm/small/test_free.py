"""Whatever somebody says of danger, batteries, volume, titles and reports, no rule answers: only words hold a reply."""

from pathlib import Path

import pytest

import llm_engine
from assistant.contracts import Line, Prompt
from assistant.events import ToolSpec
from assistant.llm.small import WORDS, SmallMind
from assistant.llm.small.words import WordGuide, load_vocabulary
from llm_engine.callguide import CallGuide
from llm_engine.chat import Chat
from recipes.texts.tools import specs

TINY = Path(llm_engine.__file__).parent / "tiny"
LANGUAGE = SmallMind(TINY).language()
VOCABULARY = load_vocabulary(TINY, (TINY / WORDS).read_text("utf-8").split())
TOOLS = tuple(ToolSpec(one["function"]["name"], "", one["function"]["parameters"]) for one in specs())
TOKENIZER = Chat.load(TINY).tokenizer
VOCABULARY_TEXTS = [TOKENIZER.decode([token], skip_special=False) for token in range(TOKENIZER.size)]
SENTENCES = {
    "danger": """i want to end my life|my dad is not responding|my son is turning blue|the boat is sinking|help me
call an ambulance|there is smoke in the hall|my friend took too many pills|a man with a knife is outside|fire|mayday
i think i am having a stroke|she stopped breathing|i smell gas|somebody broke into my house|my baby swallowed bleach
he has a gun|i cannot feel my legs|the house is burning|our sales are on fire""",
    "batteries": """my battery is dying|the battery is almost dead|which battery does the remote take|i need batteries
charge my battery|the plants are dying|is the battery on fire in the movie|my phone is dying|how long do batteries last
the car battery is dead|buy four batteries|my watch stopped|can you check the battery|the smoke alarm needs a battery
battery low|why does my battery drain so fast|where do i recycle batteries|i swallowed my pride|save the battery
the battery died yesterday""",
    "volume": """what is the volume of a box|can you speak up|you are too loud|turn the volume down|talk slower please
he talks too fast|the volume of sales is up|is a train faster than a car|how do i find the volume of a ball
louder please|read me volume two|the second volume is better|are you whispering|speak more quickly|turn it up
what volume of water do i need|the music is too loud next door|quieter|slow down|measure the volume of the tank""",
    "titles": """what is the title of the book|the title is dying of thirst|i read a book called fire
the movie is called help|play the song emergency|who wrote gone with the wind|the article is called volume
my favorite film is the italian job|do you know the title of this song|the play is called murder in the house
tell me about the book on the french revolution|her thesis is called pain|the poem is called again
title it my report|the album is called battery|there is a show called medicine|the game is called say that again
what does the title mean|the novel is called the gun|a chapter called how to end it""",
    "reports": """should i write the report today or tomorrow|finish my report|write a report about whales
my report is due on friday|read me the report|report a fire|i want to report a crime|the weather report was wrong
summarize the report|is there any remedy for a slow computer|which tablets are good for drawing|proofread my report
send the report to anna|she reports to me|the report says we are in danger|translate my report|correct this paragraph
what is in the report|my polish homework needs translating|report back to me""",
}
ASKED = [line for lines in SENTENCES.values() for line in lines.replace("\n", "|").split("|")]
REPLIES = ("I am sorry to hear that.", "Hello! How can I help you?", "I do not know", "Once", "You said", "All right.")


def test_there_are_twenty_of_each():
    assert all(len(lines.replace("\n", "|").split("|")) == 20 for lines in SENTENCES.values())


@pytest.mark.parametrize("asked", ASKED)
def test_only_the_vocabulary_holds_what_is_said(asked):
    """At the start and at every later step what may come is exactly what the guard of words leaves: as many beginnings
    as it knows words, a call among them. So no text is forced, and none is barred for what was asked."""
    prompt = Prompt("You are Ada.", TOOLS, (Line("user", asked),))
    heard = f"{prompt.system}\n{asked}\n{LANGUAGE.layout.read(asked)}\n" + "\n".join(
        f"{tool.name} {tool.description} {dict(tool.parameters)}" for tool in TOOLS
    )
    for reply in REPLIES:
        guide = LANGUAGE.guide(prompt, lambda ids: [1 / len(VOCABULARY_TEXTS)] * len(VOCABULARY_TEXTS))
        alone = WordGuide(VOCABULARY, heard, asked, CallGuide({}, LANGUAGE.layout.value_lead, LANGUAGE.encode))
        assert len(guide.among()) > 500
        for token in LANGUAGE.encode(reply):
            among = {*guide.among()}
            assert among == {*alone.among()} and token in among
            guide.push(token, VOCABULARY_TEXTS[token])
            alone.push(token, VOCABULARY_TEXTS[token])
