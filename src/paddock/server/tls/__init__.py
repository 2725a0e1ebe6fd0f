"""TLS for the client ports: files, contexts, certificates, identities.

Plain ports need nothing from here.
"""
