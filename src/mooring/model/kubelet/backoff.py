"""How long a Job waits before it makes a failed pod anew."""

BACKOFF_LIMIT = 6
"""How often a Job that does not say makes failed pods anew, before it fails."""
BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 10.0, 600.0
"""After the first failure; twice as long after each further one, up to ten minutes."""


def backoff_seconds(failures: int) -> float:
    """How long after its last failure a Job, or one index of it, waits.

    >>> [backoff_seconds(failures) for failures in (0, 1, 2, 6, 7, 100)]
    [0.0, 10.0, 20.0, 320.0, 600.0, 600.0]
    """
    return min(LONGEST_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** min(failures - 1, 10)) if failures > 0 else 0.0
