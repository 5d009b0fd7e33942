"""One file a way of declaring gangs: Kubernetes, Volcano, Coscheduling, KAI, LeaderWorkerSet, Grove, annotations."""
