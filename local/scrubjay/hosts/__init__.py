"""Agents' hooks: what a host says of one thing that happened, as events to store. Pure tables; see `normalise`."""

from scrubjay.hosts.answers import answer, notice
from scrubjay.hosts.captured import Captured
from scrubjay.hosts.meanings import HOSTS, host_name
from scrubjay.hosts.normalise import REFUSED, completed, normalise, session_of

__all__ = ["HOSTS", "REFUSED", "Captured", "answer", "completed", "host_name", "normalise", "notice", "session_of"]
