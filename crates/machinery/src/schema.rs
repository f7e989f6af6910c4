//! Looks fields up in a kind's OpenAPI schema: for hints, and to say what was wanted.
