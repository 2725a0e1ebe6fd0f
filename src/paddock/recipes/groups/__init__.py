"""Groups: membership, barriers, and a set that is divided among members."""
