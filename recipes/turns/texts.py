"""The words of the sets by which turn ends and interruptions are fitted (dev) and judged (test).

No text is in both sets. `|` marks where the speaker stops to think; the text before it is a filler or a phrase that
needs more.
"""

# ruff: noqa: SIM905 - texts read best as running text

from __future__ import annotations

from typing import Literal

Part = Literal["dev", "test"]

COMPLETE: dict[Part, list[str]] = {
    "dev": """What time is it?
What's the date tomorrow?
Set a timer for twelve minutes.
Start a timer for half an hour, please.
Cancel the timer.
How much time is left on the tea timer?
What is seventeen plus twenty-six?
How much is eighty divided by five?
Twelve times nine.
What's a quarter of sixty?
How many inches are in three feet?
Convert ten pounds to kilograms.
Put butter on the shopping list.
Add tomatoes and rice to my list.
What's on my shopping list?
Take the coffee off the list.
Make a note that the plumber comes on Friday.
Read me my notes.
How do you spell rhythm?
Spell Wednesday, please.
Count to ten.
Count backwards from five.
Tell me a story about a dragon.
Tell me a joke.
My name is Laura.
What's my name?
Who are you?
What can you do?
Undo that.
Start over.
Thanks.
Thank you, that's all.
Good morning.
How are you today?
Could you repeat that?
What day of the week is Christmas?
Is it Tuesday today?
Remind me to call the dentist at four.
I'd like to talk to Ben.
Give me two more minutes on the timer.
I'm tired.
That was a nice story.
Which number is larger, eleven or twelve?
Why is the sea salty?
I think we need a new lamp in the kitchen.
Do you know a poem about the wind?
Please be a little quieter.
How far away is the moon?""".split("\n"),
    "test": """Could you tell me the time?
What day is it today?
Timer for three minutes.
Please set a timer for forty-five seconds.
Stop the pasta timer.
Are there any timers running?
What's fifteen minus eight?
Multiply six by seven.
How much is a third of ninety?
Eighty-one divided by nine.
How many grams make a pound?
What's twenty Celsius in Fahrenheit?
Add a dozen eggs to the list.
I need bread and cheese on my shopping list.
Read the shopping list.
Remove the onions.
Note that Susan's train leaves at nine.
What did I write down yesterday?
Can you spell island?
How is neighbor spelled?
Count from one to six.
Tell me something about a brave little owl.
Make me laugh.
Call me Peter.
Do you remember my name?
What are you called?
How can you help me?
Take that back.
Forget what I said.
Great, thank you.
Good evening.
That's enough for now.
Say that again, please.
What's the date next Monday?
How late is it?
Wake me in twenty minutes.
Let me speak with Ada.
Add five minutes to the kitchen timer.
I'm a bit hungry.
I liked that one.
Is thirteen a prime number?
Where does chocolate come from?
We went to the lake on Sunday.
Could you read a bit slower?
How old is the oldest tree?
Never mind.
What comes after nineteen?
Our cat doesn't eat the new food.""".split("\n"),
}

PAUSED: dict[Part, list[str]] = {
    "dev": """Set a timer for, um, | ten minutes.
Could you, uh, | tell me the time?
What is, um, | forty-two plus nineteen?
Remind me to | call my sister tonight.
Put, let me think, | milk and honey on my list.
I need, um, | apples and butter.
How do you spell | chocolate?
What's the | date on Friday?
Tell me a story about, hmm, | a pirate and a cat.
How many | ounces are in a pound?
Convert | thirty miles to kilometers.
Add coffee, tea and | sugar to my shopping list.
My name is, well, | actually call me Daniel.
Take a note that | the meeting is on Monday.
Start a timer for, let me see, | a quarter of an hour.
What's twelve times, uh, | eleven?
Can you please | count to five?
I was wondering if | you could tell me a joke.
Cancel the | pasta timer, please.
So, um, | what day is it today?
Set the timer to | two hours and five minutes.
Divide ninety by, um, | six.
I'd like to | hear something funny.
Is there any | bread on my list?
Wake me up at, uh, | half past six.
Remove the, what's it called, | the cheese from my list.
Remind me that | I have to pay the rent.
What do you know about, um, | the weather on the moon?
Well, | tell me the time in London.
Please put | rice and beans on the list.
Make a note, uh, | buy flowers for Julia.
How much is a hundred and twenty minus | thirty-five?
Let me think, um, | set a timer for one minute.
Which day is the | third of October?
Spell the word | umbrella for me.
Okay, so, | how many minutes are in a day?""".split("\n"),
    "test": """Start a timer for, uh, | seven minutes.
Can you, um, | say what time it is?
How much is, hmm, | twenty-three times four?
Remind me to | water the plants.
Add, let me see, | onions and salt to the list.
We need, uh, | potatoes and cheese.
How is the word | kitchen spelled?
What day is the | first of May?
I want to hear a story about, um, | a wizard and an owl.
How many | feet are in two meters?
What's | fifty kilometers in miles?
Put eggs, rice and | onions on my shopping list.
You can call me, hmm, | let's say Robert.
Write down that | the doctor called at noon.
Set a timer for, what was it, | twenty-five minutes.
What's eighty minus, um, | fifty-four?
Would you | count from three to nine?
I wanted to ask you | how late it is.
Stop the | egg timer.
Um, | is it Thursday today?
Give me a timer of | one hour and ten minutes.
Multiply fourteen by, let me think, | three.
I would like you to | tell me a riddle.
Do I have any | honey on the list?
Set an alarm for, um, | quarter to eight.
Take the, uh, | the bread off my list.
Please remember that | Emily likes tea.
Can you tell me about, uh, | the history of bridges?
So, | what's the date tomorrow?
Put down | butter and coffee.
Make a note that, um, | the key is under the mat.
What is two hundred divided by | eight?
Hold on, um, | add three minutes to the timer.
How many days until | the end of the month?
Can you spell | orange and yellow?
All right, uh, | who are you?""".split("\n"),
}

NODS: dict[Part, list[str]] = {
    "dev": "Mm-hm. Yeah. Right. Uh-huh. Okay. Mhm. I see. Sure. Oh. Yes. Mm.".split(". "),
    "test": "Mm-hmm. Yep. Right, right. Uh huh. Ok. Hm. Really. Aha. Wow. Yeah, yeah. Hmm.".split(". "),
}
INTERRUPTIONS: dict[Part, list[str]] = {
    "dev": """Stop.
Wait.
No.
Hold on, what was the second one?
No, I meant tomorrow.
Actually, what time is it?
Can you say that again?
Okay, stop, that's enough.
What about the timer?
Yeah, but what day is it?
Set a timer for five minutes.
Sorry, I have another question.
That's not what I asked.
Tell me something else.
How many minutes are left?
Please be quiet.
Wait, wait, who was that?
Just give me the number.""".split("\n"),
    "test": """Stop it.
Wait a second.
No, no.
Hang on, how long does that take?
No, not that list.
Sorry, what day is it today?
Could you start again?
All right, that will do.
And the shopping list?
Right, but I asked about Monday.
Add milk to my list.
Excuse me, that's wrong.
I wanted the other story.
Something shorter, please.
What did you say before that?
Be quiet now.
Stop, who told you that?
Never mind the details.""".split("\n"),
}
