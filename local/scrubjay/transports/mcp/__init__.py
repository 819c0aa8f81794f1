"""MCP: the tools that agents call, served by the daemon in both eras of the protocol, without a state of its own.

`mount` is the ASGI app and loads the rest at its first request; `server` is the one module that knows the SDK. What a
tool is, which there are and what they answer stands in modules that know no SDK and no network.
"""
