"""The API over HTTP: paths, negotiation, lists, watch streams, discovery."""
