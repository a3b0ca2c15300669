"""The talk in, words and tool calls out.

prompt     conversation → prompt
rounds     the passes of one reply: words out, tools run, results back in
tools      functions that the model may call
builtins   those that every talk has; answers: their words; kept: what they keep
mind       the local language model behind the Thinker contract
holding    whose state the engine holds, and where that of other talks is
window     how much of a talk the context holds
tape       what is folded into the model's state, and the way to what should be
writing    one reply decoded
language   a model's text side; layout: the parts of its chat format
"""
