"""Tests of the Python package. ``scripts/python.sh`` runs them."""
