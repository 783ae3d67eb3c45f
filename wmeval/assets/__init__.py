"""What things are: mesh and texture builders."""
