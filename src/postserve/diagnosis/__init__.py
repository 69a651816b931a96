"""Whether follow-ups will help, asked of a log before anything is changed."""

from postserve.diagnosis.diagnosing import Diagnosis as Diagnosis
from postserve.diagnosis.diagnosing import diagnose as diagnose
