"""The daemon: `app` is its HTTP door, `process` the process that serves it, `control` starts, stops and watches that.

This package imports neither, so that asking after a daemon does not load a web server.
"""
