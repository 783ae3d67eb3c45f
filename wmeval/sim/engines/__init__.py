"""sim/engines"""
