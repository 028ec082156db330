"""Ways in for programs that are not Python: an MCP server, and the settings of the clients that start it.

Everything here translates to `Memory` and `ReasoningBank`; no rule of memory lives here.
"""
