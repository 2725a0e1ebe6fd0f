"""One suite for two servers: what Apache ZooKeeper does, Paddock does."""
