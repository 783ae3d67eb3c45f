"""GAUGE's 22 families as environments: from a family's card to a scene, its motion and markers."""
