"""Manifests as the world: files and stories, time that passes only when told to."""
