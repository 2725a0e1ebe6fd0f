"""Log rooms: channels with numbered entries that many follow."""
