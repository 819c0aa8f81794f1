"""What enters the store passes here: drafts of this machine (`intake`) and ops of other devices (`receipt`)."""
