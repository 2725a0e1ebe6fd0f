"""The asyncio client of any ZooKeeper service.

Import order: `requests` <- `watches` <- `session` <- `operations` <- `client`. Each package imports
those before it, and none after it.

`results` and `states` are records that all of them may import.
"""
