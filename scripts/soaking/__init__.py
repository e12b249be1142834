"""Torment whole hosts with kills, stops and requests by chance, and see whether they keep their promises."""
