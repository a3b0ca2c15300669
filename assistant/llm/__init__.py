"""The local language model behind its contract: prompts to tokens, tokens to state.

chat_layout     the parts of a checkpoint's chat format
decoding        one reply, token by token
emergency       whether somebody is in danger, for a small model
frozen          a talk's state as a capsule, and back
guessed         a talk's state before a guess, and the way back to it
keeper          programs pin, name, fork and drop the stored states of their prompts
known_replies   what a small model may say where it calls nothing
known_tools     what a small model may call the tools with that it knows by heart
language        a model's text side: layout, tokens, streams
local           the contract's face
prefixes        beginnings of prompts that were folded once, found again
sight           pictures, seen once and stored by content
talk_state      the facts about one talk, and their form on disk
recall          what was told of the user's own things, for a small model
reply_guide     what a small model may call, ask, refuse and recall in one reply
tool_retrieval  what a request may mean of the declared tools
token_log       the tokens folded into the state, and those left to fold
way             the way from the state an engine has to the state a prompt wants
window          how much of a talk the context holds
work            the work of each call of the contract on the engines' thread
"""
