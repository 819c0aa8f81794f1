"""The keys of an account and of its devices, and how one is handed to the holder of another. Pure.

Randomness comes in as an argument, except what HPKE draws to encapsulate: the library offers no way to give it. What is
secret is left out of every `repr`, and never part of an error. Python cannot erase memory: a key that was used stays in
this process's memory until the system takes it back.
"""
