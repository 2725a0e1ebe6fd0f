"""What operators see: four-letter words, the admin server, metrics, health, the audit log.

Nothing here is on the path of a request.
"""
