"""Settings and their loading: configuration files as typed values, with one clear line for what is wrong."""
