"""The voice assistant: hearing, thinking and speaking joined into a talk, and the ways to reach it.

events      what travels between a talk and its front
session     one talk; `Talks` opens, resumes and closes them
cohost      both engines in one context, one thread that issues replays
hearing, thinking, speaking   the stages
realtime, server, local, commands   the fronts
"""
