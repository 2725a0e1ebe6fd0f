"""Trees on their way from a service to a file, from a file to a service, or between two services.

`tree_reader` reads a tree as a stream of nodes; `file_format`, `reading` and `writing` are the
file; `importing` makes a service hold what a stream of nodes says. Nothing here holds a whole tree.
"""
