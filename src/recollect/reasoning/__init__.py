"""Learning from tasks: what an agent did is judged, distilled into strategies and guardrails, and found again.

from recollect.reasoning import ReasoningBank

bank = ReasoningBank(memory)
out = bank.run_task(task_id="t1", agent_id="a1", query="…", domain="web.admin", execute=agent, scope=scope)
"""

from recollect.reasoning.bank import ReasoningBank
from recollect.reasoning.distill import Distilled
from recollect.reasoning.items import Item, Origin
from recollect.reasoning.judge import Verdict
from recollect.reasoning.stats import BankStats
from recollect.reasoning.tasks import Run, Task
from recollect.reasoning.trajectory import Step, Trajectory, trajectory_of
from recollect.reasoning.work import RunResult, TaskResult, Work

__all__ = [
    "BankStats", "Distilled", "Item", "Origin", "ReasoningBank", "Run", "RunResult", "Step", "Task", "TaskResult",
    "Trajectory", "Verdict", "Work", "trajectory_of",
]  # fmt: skip
