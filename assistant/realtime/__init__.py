"""The OpenAI Realtime protocol as pure code: JSON in, commands out; events in, JSON out.

fields     reading untrusted JSON
items      items, replies and usage as JSON, and back
mcp        MCP servers: asked for, listed, called, approved
replies    running replies, their formats, and what the assistant does now
settings   the session object: merged, validated, echoed whole
sound      base64 of PCM or G.711 in and out, in pieces
events     one reader per client event, one writer per server event
protocol   the state of one connection, which joins them
"""
