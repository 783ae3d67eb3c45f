"""Parameters of engines identified on one half of real recordings, to be scored on the other."""
