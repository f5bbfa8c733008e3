"""Vision-language models on trajectory recovery: asked, read, scored and reported; `inktraj eval` on the command line.

>>> from inktraj.evaluation import evaluate_model
>>> run = evaluate_model("inktraj", "demo", "eval-inktraj-demo")      # doctest: +SKIP
"""

from inktraj.evaluation.plan import AskingPlan
from inktraj.evaluation.prompts import Prompt
from inktraj.evaluation.results import KINDS, EvaluationRun, Outcome, Row
from inktraj.evaluation.run import Plan, Watcher, evaluate_model

__all__ = ["KINDS", "AskingPlan", "EvaluationRun", "Outcome", "Plan", "Prompt", "Row", "Watcher", "evaluate_model"]
