"""How cards and shares of them are written, one dialect a file."""
