"""One cycle of admission: heads are nominated, ordered, and given quota one after the other."""
