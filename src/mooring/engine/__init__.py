"""The framework: contracts of plugins, evaluation, kept answers, rankings, the queue and the cycle."""
