//! State: which instance declares an entry, and whether a value fits.
