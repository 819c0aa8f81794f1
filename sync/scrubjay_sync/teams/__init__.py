"""Teams: scopes that several people share, each with an account of their own at the same server.

`log` follows and changes a team's log, `keys` has what a person signs and opens with in teams, `words` what people
compare, `lanes` reads and writes a team's objects, `membership` lets in, takes out and leaves, `rounds` is the part
of a sync round.
"""
