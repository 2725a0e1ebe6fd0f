"""Service discovery: instances that register, and providers that choose one."""
