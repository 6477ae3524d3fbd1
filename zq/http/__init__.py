"""The HTTP doors: they translate between requests and the engine's verbs and hold no rules."""
