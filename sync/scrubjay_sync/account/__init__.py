"""What changes an account: signing up, letting devices in and out, recovery, scopes, the password.

Root keys are made at sign-up, at a rotation and when entries are voided, and nowhere else: a machine that logs in to an
account that exists either is given its root key or has none.
"""
