"""The version of this program. A module of its own, because the hook's client needs it and nothing else."""

__version__ = "0.2.0.dev0"
