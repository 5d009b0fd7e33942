"""Objects by resource, namespace and name, as JSON bytes with revisions; every change once and in order."""
