"""Who brings events from a world and carries decisions out in it."""
