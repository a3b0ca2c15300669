"""Requests that others made up: what they told and asked for later, and tools of theirs. See `__main__`."""
