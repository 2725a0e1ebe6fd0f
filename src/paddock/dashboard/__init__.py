"""The dashboard: a page that shows a service, and the server of that page (`paddock dashboard`).

It is a process of its own and a client of the service, as any other. `app` puts it together.
"""
