"""Texts, generated: what people say to the assistant, what it answers, and whole talks with tool calls.

tools.py      the built-in tools and the shipped personas, as the small model knows them
"""
