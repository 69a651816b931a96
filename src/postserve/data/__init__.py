"""Real data: sets fetched from their publishers, checked and loaded; any table as logged rounds."""

from postserve.data.actg175 import actg175 as actg175
from postserve.data.actg175 import actg175_course as actg175_course
from postserve.data.encoder import Encoder as Encoder
from postserve.data.fetching import fetch as fetch
from postserve.data.finding import data_folder as data_folder
from postserve.data.finding import find as find
from postserve.data.finding import read_checked as read_checked
from postserve.data.follows import FollowsArm as FollowsArm
from postserve.data.frame import from_frame as from_frame
from postserve.data.hillstrom import hillstrom as hillstrom
from postserve.data.jester import jester as jester
from postserve.data.movielens import Ratings as Ratings
from postserve.data.movielens import movielens as movielens
from postserve.data.registry import SETS as SETS
from postserve.data.registry import DataSet as DataSet
from postserve.data.registry import data_set as data_set
from postserve.data.rounds import LoggedRounds as LoggedRounds
