"""What queues in Kueue's way: jobs and pods, each with its Workload, its pods and its gates."""
