"""Who has to go so that a more important entry fits, and whether that would help."""
