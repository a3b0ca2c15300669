"""From settings to talks that can be opened.

config     every setting and its origin; profiles
ears       which ears: fetched, by kind, or on a server
listed     personas as capsules, in line with their files
household  timers, lists and notes of the home: opened, taken over, told aloud
hub        models fetched, resumed, verified
models     the three models, opened by kind: on this machine or on a server
older      what the version before kept of parked talks
places     where models lie
start      models, personas and voices made ready, and let go again
voices     voices looked after: listed, added, removed
"""
