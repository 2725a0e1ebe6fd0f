"""What tests are made of, for Paddock's own and for those of its users."""
