"""From settings to talks that can be opened.

config   every setting and its origin; profiles
hub      models fetched, resumed, verified
start    engines, personas and voices made ready, and let go again
"""
