"""Settings: what each is, where its value comes from, and how it is read.

Nothing here starts anything.
"""
