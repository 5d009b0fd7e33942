"""The web pages: what `report` says of a cluster, drawn in a browser."""
