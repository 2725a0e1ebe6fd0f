"""The differential run: the same random operations on two servers, every answer compared."""
