"""Raw values of x and z, by the names of their fields."""

from typing import TypeAlias

Value: TypeAlias = float | str
"""A number or the name of a category."""
Values: TypeAlias = dict[str, Value]
