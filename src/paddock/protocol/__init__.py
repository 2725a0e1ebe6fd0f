"""ZooKeeper's wire protocol, without IO: bytes in, records out.

Client and server share these modules, and neither is mentioned in them. Nothing here opens a
socket, asks for the time or keeps state between two calls, except the bytes of an incomplete frame.
`operations` is the table of all operations.

Strings stay UTF-8 `bytes` from the socket to the tree and back, because most of them are paths
that are only looked up. `protocol.paths` says which of them are valid.
"""
