"""From settings to talks that can be opened.

checks     settings checked before anything is loaded
chooser    which language model answers, which could, which could be fetched
chosen     the language model chosen in the page, kept for the next start
config     every setting and its origin; profiles
ears       which ears: fetched, by kind, or on a server
fetching   one model fetched, paused, continued, cancelled
forgetting  a sentence forgotten for good, in every talk
found      language models on this machine, ours and those of other programs
household  timers, lists and notes of the home: opened, taken over, told aloud
ggufs      which GGUF file of a repository is fetched
hub        models fetched, resumed, verified
looks      first looks at language models, each made once
listed     personas as capsules, in line with their files
models     the three models, opened by kind: on this machine or on a server
parts      parts that can be left out
places     the folders that models lie in
remembered  the memory, seen and changed by hand
removed    settings and options that were removed, each with its replacement
start      models, personas and voices made ready, and let go again
standing   the voice and the ears stay while the language model is switched
switching  the language model is switched while the program runs
verdict    whether a language model runs here
voices     voices looked after: listed, added, removed
"""
