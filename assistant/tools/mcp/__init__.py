"""Tools of MCP servers, as `mcp.json` in the home folder names them.

answers   a server's results as words for the model
offered   a server's list of tools, checked, as tools of a talk
server    one server: started, called, started again once
servers   all servers of a home
written   the file, read and checked
"""
