"""Files that hold files: archives, and databases of other programs, as the files that `scrubjay.importers` reads."""
