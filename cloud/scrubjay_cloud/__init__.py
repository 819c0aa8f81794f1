"""The cloud service: an ordered store of signed, opaque objects. It cannot read memories, by what it may import."""
