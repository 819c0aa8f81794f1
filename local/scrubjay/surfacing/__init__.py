"""What a session will need, predicted from what it is at; and whether what was told ahead was used. Pure."""
