"""The loop that everything passes through, and the verbs that every door calls. Knows no HTTP."""
