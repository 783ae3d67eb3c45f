"""Makers of many."""
