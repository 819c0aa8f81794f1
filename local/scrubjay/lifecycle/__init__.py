"""What becomes of memories over time: pure plans, which a use case or a job carries out."""
