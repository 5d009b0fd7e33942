"""The commands, one sub-room each: options in, tables or data out."""
