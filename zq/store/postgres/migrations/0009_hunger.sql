-- Only a server whose workers wait for jobs has to hear of each tick of others that may have some for them.

ALTER TABLE servers ADD COLUMN is_hungry boolean NOT NULL DEFAULT false;
