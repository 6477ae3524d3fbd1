"""Who may do what at the door of queue-ti: logins, tokens, and the grants of users."""
