"""The world in virtual time: work arrives, pods live and end, nodes fail, and the scheduler decides in between."""
