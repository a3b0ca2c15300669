"""Requests made up by others: things they told and asked for later, their own tools, talks with ours. See `__main__`.

built_in  talks with the built-in tools
"""
