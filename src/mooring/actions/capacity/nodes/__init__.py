"""Buys nodes for pods that no node fits, and gives nodes back: the part of capacity that acts."""
