"""The daemon: `process` serves, `control` starts, stops and watches it.

This package imports neither, so that asking after a daemon does not load a web server.
"""
