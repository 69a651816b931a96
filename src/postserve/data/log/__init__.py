"""Logged decisions: one schema, in Parquet, read piece by piece; other formats in and out."""

from postserve.data.log.decisions import DecisionLog as DecisionLog
from postserve.data.log.dsjson import from_dsjson as from_dsjson
from postserve.data.log.dsjson import to_dsjson as to_dsjson
from postserve.data.log.open_bandit import from_open_bandit as from_open_bandit
from postserve.data.log.open_bandit import to_open_bandit as to_open_bandit
