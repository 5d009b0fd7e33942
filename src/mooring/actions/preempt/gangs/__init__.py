"""Room for a gang as a whole, and whole gangs that go for others."""
