"""Deterministic simulation: seeded histories of several devices under faults, the laws that must hold, planted bugs."""
