-- Statements that read alike in both stores.

-- name: drop_lane
DELETE FROM lanes WHERE id = :id

-- name: note_next
UPDATE lanes SET next = :next WHERE id = :id

-- name: name_heirs
UPDATE lanes SET heir = :heirs WHERE id = :id

-- name: begin_epoch
UPDATE lanes SET epoch = :epoch, next = :next WHERE id = :id

-- name: put_batch
INSERT INTO lane_batches (lane, first, keys) VALUES (:id, :first, :keys::json)

-- name: drop_batches
DELETE FROM lane_batches WHERE lane = :id AND first <= :upto
