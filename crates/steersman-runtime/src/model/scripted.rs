//! The scripted model: answers from one file, listed by agent.
