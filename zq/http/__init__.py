"""The HTTP doors. They translate between requests and the services' verbs and hold no rules."""
