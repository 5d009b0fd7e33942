"""The kinds that scheduling reads, field by field, as their projects spell them."""
