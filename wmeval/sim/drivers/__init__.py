"""sim/drivers"""
