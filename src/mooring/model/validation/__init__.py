"""Checks of objects, like the API server's and the webhooks of the projects that the kinds come from."""
