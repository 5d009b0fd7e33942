"""Pods that spilled over from their node pool go back when it has room: a few at a time, and never to and fro."""
