"""The parts of the RMM middleware, one idea each: injection, streaming, state, banks of memories, faults."""
