"""The commands that ask a service, one module each; main.py names them, and imports one of them."""
