"""The schema's history. A revision is never edited after it has landed; the next one corrects it."""
