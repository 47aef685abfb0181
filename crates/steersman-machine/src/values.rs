//! Values: lossless JSON, declared types, expressions and templates, prices and rates.

pub mod expression;
pub mod json;
pub mod near;
pub mod price;
pub mod rate;
pub mod schemas;
pub mod types;
