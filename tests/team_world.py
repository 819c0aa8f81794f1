"""Several people with accounts of their own at one real service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scrubjay_shared.ops import Field
from scrubjay_shared.teams import TeamRole
from scrubjay_sync.account import registration
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.policy import TEAM_CHANGED
from scrubjay_sync.teams import membership
from scrubjay_sync.teams.log import PinnedTeam, TeamContext
from scrubjay_sync.teams.words import card_words
from sync_devices import AUTH_KEY, KDF, Device, Network, World, let_in

PROJECT = "proj_team"


@dataclass
class People:
    """Who is at a server, by name; each has one device or more."""

    world: World
    devices: dict[str, list[Device]] = field(default_factory=dict)

    async def person(self, name: str) -> Device:
        """Sign somebody up, with their first device."""
        path, network = self.world.path / name / "memory.db", Network(self.world)
        machine = await self.world.machine(path, network)
        member = await registration.sign_up(
            machine,
            username=name,
            auth_key=AUTH_KEY,
            kdf=KDF,
            recovery=RecoveryCode(secret=name.encode().ljust(20, b"c")),
            name=f"{name}-laptop",
            bring_all=False,
        )
        made = Device(world=self.world, machine=machine, member=member, network=network, path=path)
        self.devices[name] = [made]
        return made

    async def another(self, name: str) -> Device:
        """Let in another device of somebody."""
        from scrubjay_sync.account import admission  # noqa: PLC0415

        first = self.devices[name][0]
        path = self.world.path / f"{name}{len(self.devices[name])}" / "memory.db"
        network = Network(self.world)
        machine = await self.world.machine(path, network)
        joining = await admission.log_in(machine, username=name, auth_key=AUTH_KEY, name=f"{name}-second")
        member = await let_in(joining, first.member, first.machine.cloud)
        made = Device(world=self.world, machine=machine, member=member, network=network, path=path)
        self.devices[name].append(made)
        return made


def teams_of(device: Device) -> TeamContext:
    """What a device has of teams."""
    return device.engine.teams


async def founded(device: Device, name: str = "core") -> bytes:
    """Make a team to which a project is bound; return its id."""
    await device.sync()
    found = await membership.create(teams_of(device), name, (PROJECT,))
    await device.sync()
    return found.team


async def joined(
    admin: Device, team: bytes, who: Device, username: str, role: TeamRole = TeamRole.WRITER
) -> PinnedTeam:
    """Let somebody in, as two people do who read words to each other."""
    await who.sync()
    words = card_words(await membership.own_card(teams_of(who)))
    proof = await membership.invite(teams_of(admin), team, username, role, words)
    found = await membership.join(teams_of(who), "core", proof, (PROJECT,))
    await who.sync()
    await admin.sync()
    return found


async def team_note(device: Device, text: str, **fields: Any) -> str:
    """Write a memory about the team's project; return its id."""
    return await device.note(text, scope="project", resource_id=PROJECT, **fields)


async def shown(device: Device) -> dict[str, str]:
    """What a device has of the team's project, and how far it trusts each."""
    rows = await device.store.read(
        lambda q: q.fetch("select content, trust from memory where resource_id = ?", (PROJECT,))
    )
    return {str(content): str(trust) for content, trust in rows}


async def told(device: Device) -> list[str]:
    """What a device tells of changes of teams."""
    found = await device.store.read(lambda q: q.replication.alarms())
    return [alarm.message for alarm in found if alarm.code == TEAM_CHANGED]


async def alarms(device: Device) -> list[str]:
    """The codes of a device's other alarms, those apart that tell who is in an account."""
    return [code for code in await device.alarms() if code != TEAM_CHANGED]


__all__ = ["PROJECT", "Field", "People", "alarms", "founded", "joined", "shown", "team_note", "teams_of", "told"]
