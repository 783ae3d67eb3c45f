"""The five RigidBench tasks: how a sample is drawn, laid out, framed and told."""
