"""The tables that follow from the ops, whoever wrote them. `projections.py` registers all of them."""
