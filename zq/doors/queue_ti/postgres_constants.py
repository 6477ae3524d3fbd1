"""What words in the queries of users stand for."""

USER_ROW = (
    "json_build_object('id', id, 'name', name, 'hash', hash, 'created_at', created_at,"
    " 'is_admin', is_admin = 1, 'updated_at', updated_at, 'grants',"
    " coalesce((SELECT json_agg(json_build_object('id', g.id, 'action', g.action,"
    " 'pattern', g.pattern, 'created_at', g.created_at, 'group', g.group_id)"
    " ORDER BY g.created_at) FROM user_grants AS g"
    " WHERE g.\"user\" = users.id), '[]'::json))::text"
)
"""A user with its grants, by the names of the fields of `User`."""

CONSTANTS = {"user_row": USER_ROW}
