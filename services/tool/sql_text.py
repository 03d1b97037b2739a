"""Writes names and values into SQL text without letting them out of their quotes."""


def identifier(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
