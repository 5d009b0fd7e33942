"""Decisions about pods, carried out."""
