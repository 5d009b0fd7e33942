"""What `mooring explain` says of one pod."""
