"""Values under keys: what frameworks with a key-value or document interface keep in a memory."""
