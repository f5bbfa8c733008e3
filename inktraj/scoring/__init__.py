"""Predictions × references → scores; `inktraj score` on the command line."""

from inktraj.scoring.run import score, score_pairs
from inktraj.scoring.scores import Drawing, ScoredWord, Scores
from inktraj.scoring.writing import read_scores

__all__ = ["Drawing", "ScoredWord", "Scores", "read_scores", "score", "score_pairs"]
