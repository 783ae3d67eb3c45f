"""How worlds move and look."""
