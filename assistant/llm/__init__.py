"""The local language model behind its contract: prompts to tokens, tokens to state.

chat_layout     the parts of a checkpoint's chat format
decoding        one reply, token by token
emergency       whether somebody is in danger, for a small model
frozen          a talk's state as a capsule, and back
guessed         a talk's state before a guess, and the way back there
keeper          programs pin, name, fork and drop what is kept
known_replies   what a small model may say where it calls nothing
known_tools     what a small model may call the tools with that it knows by heart
language        a model's text side: layout, tokens, streams
local           the contract's face
prefixes        beginnings of prompts that were folded once, found again
sight           pictures, seen once and kept by content
talk_state      what is known of one talk, and its form on disk
recall          what was told of the user's own things, for a small model
reply_guide     what a small model may call, ask, refuse and recall in one reply
tool_retrieval  what a request may mean of the declared tools
token_log       what is folded into the state, and what is left to fold
way             from the state an engine has to the state a prompt wants
window          how much of a talk the context holds
work            what each call of the contract does on the engines' thread
"""
