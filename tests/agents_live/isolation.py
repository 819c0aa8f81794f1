"""A network that holds nothing but loopback: whatever an agent would send elsewhere has nowhere to go."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x1 | 0x40


def isolate() -> None:
    """Put this thread, and what it starts from now on, into such a network. Raises OSError where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "no network namespace: an agent is not run with a network")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14s", b"lo", UP_AND_RUNNING, b""))
