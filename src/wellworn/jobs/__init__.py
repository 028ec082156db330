"""Durable jobs: a queue in the store itself, and workers on it. Knows handlers as callables, not what they do."""

from wellworn.jobs.queue import Backoff, Queue
from wellworn.jobs.worker import Handler, Worker

__all__ = ["Backoff", "Handler", "Queue", "Worker"]
