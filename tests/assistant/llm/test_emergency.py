"""Where life is at stake the reply does not hang on a small model."""

import pytest

from assistant.llm.emergency import is_emergency

IN_DANGER = """
call an ambulance|please call the police now|can you phone the fire brigade for me|we need medical help|dial 911
mayday|okay help help|fire|police please|ambulance now|it's an emergency|my life is in danger|i need the coast guard
my father can't breathe|the baby isn't breathing|somebody is unconscious|she has no pulse|my mother won't wake up
i think i'm having a stroke|i think he had a heart attack|a child is drowning in the lake|my husband collapsed
i am bleeding badly|someone is hurt|i've fallen and i can't get up|my brother swallowed bleach|my waters have broken
there was a car accident|i was hit by a car|the cat walked by and i'm dying
i've been robbed|he has a knife|there's a burglar downstairs|someone broke in|a man is in my house|i'm being followed
my sister was kidnapped|i think there is an intruder
there is smoke in the kitchen|the house is on fire|the oven is burning|i smell gas|our curtains caught fire
"""
NOT_IN_DANGER = """
remind me to call the police tomorrow|what is a stroke|tell me a story about a burglar|how do you spell ambulance
add fire lighters to my list|set an alarm for the fire drill|i'm dying for a coffee|i'm dying of laughter|help
what do you do in an emergency|my uncle had a stroke last year|is that on fire|who called the police
note that the fire department came by|read me the news about the robbery|the radio drowned you out
quick quick|help me please|i need to convert 112 feet|my ears hurt|the shop has been closed|i bled the radiator
my nose is bleeding
did somebody break in|my favorite movie is about a kidnapped girl|there was a fire in Rome is there more on that
"""


@pytest.mark.parametrize("line", [line for row in IN_DANGER.split("\n") for line in row.split("|") if line])
def test_somebody_in_danger_is_noticed(line):
    assert is_emergency(line)


@pytest.mark.parametrize("line", [line for row in NOT_IN_DANGER.split("\n") for line in row.split("|") if line])
def test_what_is_asked_told_or_made_up_is_no_danger(line):
    assert not is_emergency(line.lower())
