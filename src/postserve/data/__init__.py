"""Real data: sets fetched from their publishers, checked and loaded; any table as logged rounds."""

from postserve.data.actg175 import actg175, actg175_course
from postserve.data.fetching import fetch
from postserve.data.finding import data_folder, find, read_checked
from postserve.data.frame import from_frame
from postserve.data.hillstrom import hillstrom
from postserve.data.jester import jester
from postserve.data.movielens import Ratings, movielens
from postserve.data.registry import SETS, DataSet, data_set
from postserve.data.rounds import LoggedRounds

__all__ = [
    "SETS",
    "DataSet",
    "LoggedRounds",
    "Ratings",
    "actg175",
    "actg175_course",
    "data_folder",
    "data_set",
    "fetch",
    "find",
    "from_frame",
    "hillstrom",
    "jester",
    "movielens",
    "read_checked",
]
