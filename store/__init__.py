"""The durable side: values, contracts, lifecycle and approvals (all pure), and the SQLite run store."""
