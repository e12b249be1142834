"""Pictures of runs and plans: pure values first, then a drawing of them; the drawing library is imported last."""
