"""The Writer: a language model that the person set, asked under caps of tokens. Off unless the person turns it on."""
