"""Trees on their way from a service to a file, from a file to a service, or between two services.

`walk` reads a tree as a stream of nodes, in one order; `file_format`, `reading` and `writing` are
the file; `importing` makes a service hold what a stream of nodes says. Nothing here holds a tree:
what is held is a window of nodes and the names on the way down to it.
"""
