"""Decisions on which nodes to buy and which to give back."""
