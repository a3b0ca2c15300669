"""Generated texts: people's requests to the assistant, its answers, and whole talks with tool calls.

tools           the built-in tools and the shipped personas, as the small model knows them
words           slot values, and the split that keeps a tenth of them for scoring
phrases         how people put a request, by intent
smalltalk       fixed questions and answers, and things out of reach
stories         stories in parts
scene           a talk while it is being made up
slots           values as people say them
misheard        how the speech recogniser mishears words
scenes          every kind of exchange in a talk, and its share
scenes_time     the clock, dates, timers, alarms, reminders
scenes_tools    the other tools
scenes_talk     the people and the talk itself
scenes_told     longer answers, which may be cut off
scenes_interrupted  a reply that was broken off, and something else wanted
scenes_repair   a turn that was misheard
declared_words  kinds of tools that a client may declare, and their domains
scenes_declared  talks with tools that have to be read
scenes_following  corrections, chains on the last result, half a request
scenes_recalled   facts told or asked some turns ago, lists changed by position
scenes_written  talks of lines that writers made up: told and asked for, tools of any kind
scenes_written_talks  talks with the built-in tools from lines that writers made up
talks           whole talks; user_utterances and reply_sentences for the speech recipes
"""

from recipes.texts.talks import make_talk, reply_sentences, talks, user_utterances

__all__ = ["make_talk", "reply_sentences", "talks", "user_utterances"]
