//! Declared types: whether a JSON value fits, with the path of what does not.
