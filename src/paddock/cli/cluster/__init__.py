"""`paddock cluster`: several servers that share a log, and the processes of a cluster to try."""
