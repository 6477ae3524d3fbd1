"""The store on PostgreSQL. `zq.store.postgres.store` opens it."""
