"""Damage stored documents, and see that whoever reads them says so or answers as before."""
