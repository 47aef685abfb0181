//! Views of whole sessions: what a log says is data, the same from wherever one begins to read.

mod events;
mod pages;
mod world;
