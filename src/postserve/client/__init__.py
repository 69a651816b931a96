"""Clients of the decision service: what is asked (`verbs.py`), how often (`trying.py`), and two that ask."""

from postserve.client.asynchronous import AsyncClient as AsyncClient
from postserve.client.synchronous import Client as Client
