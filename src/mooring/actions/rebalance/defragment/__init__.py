"""Room for pods and gangs that wait for whole devices: with the fewest moves of pods that run."""
