"""Groups: members, barriers, and a set that is divided among members."""
