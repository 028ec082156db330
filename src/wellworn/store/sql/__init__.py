"""What the SQL engines share: one reader and one transaction, written once. What differs between them is in `db`."""
