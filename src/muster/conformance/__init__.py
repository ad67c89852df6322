"""Runs conformance cases against Muster: in the virtual world, or over HTTP against a real server process."""

from muster.conformance.cases import Case, CaseError
from muster.conformance.report import Outcome, Result
from muster.conformance.run import TARGET, run, select

__all__ = ["TARGET", "Case", "CaseError", "Outcome", "Result", "run", "select"]
