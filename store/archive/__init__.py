"""One run as one file: written from the store, proved anywhere, brought back as a record."""
