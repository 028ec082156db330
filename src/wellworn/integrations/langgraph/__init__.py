"""What the LangGraph store is put together from."""
