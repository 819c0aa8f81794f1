"""Teams: a scope that several accounts share. Its log, its members' wrapped keys, and one lane for each device.

The server keeps and orders; who is in, and who may write, is what the team's log says, which it replays like every
client. It holds no key of a team and signs nothing in its log.
"""

from __future__ import annotations

from scrubjay_cloud.teams.endpoints import ENDPOINTS

__all__ = ["ENDPOINTS"]
