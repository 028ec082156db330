"""Looking after the bank: duplicates merged, contradictions resolved or put up for review, the useless pruned, the
proven promoted. Every run can be undone."""
