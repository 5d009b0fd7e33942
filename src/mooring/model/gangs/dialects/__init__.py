"""One file a way of declaring gangs: Kubernetes, Volcano, Coscheduling, Koordinator, KAI, LeaderWorkerSet, Grove,
annotations."""
