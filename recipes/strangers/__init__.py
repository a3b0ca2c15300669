"""Requests that others made up: what they told and asked for later, tools of theirs, talks with ours. See `__main__`.

built_in  talks with the built-in tools
"""
