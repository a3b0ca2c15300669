"""The talk in, words and tool calls out.

prompt   conversation → prompt
stage    one reply: prompt, text, tools, results folded back
tools    functions that the model may call
tape     what is folded into the model's state, and the way to what should be
mind     the local language model behind the Thinker contract
"""
