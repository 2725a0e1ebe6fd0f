"""ZooKeeper's wire protocol, without IO: bytes in, records out.

Client and server share these modules and neither is mentioned in them: a record knows how to
write itself and how to be read, whoever does it. Nothing here opens a socket, asks for the time
or keeps anything between two calls, except the bytes of a frame that has not come whole yet.

Strings stay UTF-8 `bytes` from the socket to the tree and back, because most of them are paths
that are only looked up. `protocol.paths` says which of them are valid.
"""
