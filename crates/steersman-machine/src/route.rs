//! Routed agents: who acts next.
