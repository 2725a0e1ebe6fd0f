"""Commands that run under us: while a lock is held, while we lead, for each change."""
