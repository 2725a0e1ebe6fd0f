"""Shared parts of the recipes. No recipe is here, and nothing here imports one."""
