"""What several recipes stand on. No recipe is here, and nothing here imports one."""
