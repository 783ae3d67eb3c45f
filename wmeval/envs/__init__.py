"""What an agent sees."""
