"""What words in the queries of users stand for."""

USER_ROW = (
    "json_object('id', id, 'name', name, 'hash', hash, 'created_at', created_at,"
    " 'is_admin', json(iif(is_admin, 'true', 'false')), 'updated_at', updated_at, 'grants',"
    " (SELECT json_group_array(json_object('id', g.id, 'action', g.action, 'pattern', g.pattern,"
    " 'created_at', g.created_at, 'group', g.group_id)) FROM (SELECT * FROM user_grants"
    " WHERE user = users.id ORDER BY created_at) AS g))"
)
"""A user with its grants, by the names of the fields of `User`."""

CONSTANTS = {"user_row": USER_ROW}
