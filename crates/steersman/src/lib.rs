//! The library people add: runs multi-agent LLM systems as durable state machines.
