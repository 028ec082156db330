"""Learning from tasks: what an agent did is judged, distilled into strategies and guardrails, and found again.

from wellworn.tasks import ReasoningBank

bank = ReasoningBank(memory)
out = bank.run_task(task_id="t1", agent_id="a1", query="…", domain="web.admin", execute=agent, scope=scope)
"""

from wellworn.tasks.attempts import RunResult, TaskResult, TaskSpec, Work
from wellworn.tasks.bank import BankStats, ReasoningBank
from wellworn.tasks.distill import Distilled
from wellworn.tasks.items import NewItem, Origin
from wellworn.tasks.judge import Verdict
from wellworn.tasks.tasks import Task
from wellworn.tasks.trajectory import Step, Trajectory, trajectory_of

__all__ = [
    "BankStats",
    "Distilled",
    "NewItem",
    "Origin",
    "ReasoningBank",
    "RunResult",
    "Step",
    "Task",
    "TaskResult",
    "TaskSpec",
    "Trajectory",
    "Verdict",
    "Work",
    "trajectory_of",
]
