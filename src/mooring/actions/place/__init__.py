"""Place: pods and gangs onto free capacity."""
