"""Many pods of one shape at once: score all rows once, then take the best again and again."""
