"""sim/render"""
