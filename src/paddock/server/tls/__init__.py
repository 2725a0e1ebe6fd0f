"""TLS for the client and admin ports: files, contexts, certificates, identities.

Plain ports need nothing from here.
"""
