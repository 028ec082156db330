"""Durable jobs: a queue in the store itself, and workers on it. Knows handlers as callables, not what they do."""

from wellworn.core.values import Job
from wellworn.jobs.queue import Queue, find_job, list_jobs, put_job, restart_jobs
from wellworn.jobs.worker import Handler, Worker

__all__ = ["Handler", "Job", "Queue", "Worker", "find_job", "list_jobs", "put_job", "restart_jobs"]
