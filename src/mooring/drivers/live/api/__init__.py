"""The API server: who it is, what it serves, and how requests get there."""
