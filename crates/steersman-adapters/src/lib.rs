//! Touches the world: SQLite, model providers, HTTP and command tools.
