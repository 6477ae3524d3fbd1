-- Who made a budget: the name of the access key, where its budgets count against a quota.

ALTER TABLE budgets ADD COLUMN maker TEXT;
