"""Measuring the assistant as a whole: turns from the user's last sound to the reply's first.

figures    distributions of what was measured, and how they are told
turns      talks in real time, some of them interrupted
floor      what the engines' steps cost, beside reading their weights once
"""
