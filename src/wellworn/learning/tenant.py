"""What is settled for a tenant whatever the profile: who shares, from where the log counts, what was pretrained.

    {"format": 1, "kind": "tenant", "shares": true, "since": outcome number, "starts": {profile: a prior's state, …}}

Kept beside the learned states under a profile of its own, the empty one, so that an opt-out holds for every profile
and a reset outlives all that is learned after it. Written when settings change, never by an outcome.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wellworn.learning.policy import Prior
from wellworn.learning.state import dumps_prior, loads_prior

PROFILE = ""
"""The profile under which this is kept."""
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """The settings of a tenant."""

    shares: bool = True
    """Whether its people learn from each other."""
    since: int = 0
    """Number of the last outcome before a reset: it and those before it teach no more."""
    starts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By profile, the prior as labelled pairs taught it, in its plain form."""

    def start(self, profile: str, names: Sequence[str]) -> Prior | None:
        """The pretrained prior of a profile; None when there is none for these features."""
        prior = loads_prior(json.dumps(self.starts.get(profile)), names)
        return prior if prior.ranker is not None else None

    def with_start(self, profile: str, prior: Prior | None, names: Sequence[str]) -> Tenant:
        """With another pretrained prior of a profile, or with None without one."""
        others = {name: state for name, state in self.starts.items() if name != profile}
        start = {} if prior is None else {profile: json.loads(dumps_prior(prior, names))}
        return Tenant(shares=self.shares, since=self.since, starts=others | start)


def dumps_tenant(tenant: Tenant) -> str:
    """The settings as text."""
    return json.dumps(
        {"format": FORMAT, "kind": "tenant", "shares": tenant.shares, "since": tenant.since, "starts": tenant.starts},
        separators=(",", ":"),
    )


def loads_tenant(text: str | None) -> Tenant:
    """The settings in this text, the usual ones when there is none. What cannot be read shares nothing."""
    if text is None:
        return Tenant()
    try:
        value = json.loads(text)
        return Tenant(
            shares=value["shares"] is True, since=int(value.get("since", 0)), starts=dict(value.get("starts", {}))
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Tenant(shares=False)
