// What screens are made of, in one place.

export * as api from './api.mjs';
export * from './hooks.mjs';
export * from './parts/bits.mjs';
export * from './parts/text.mjs';
export * from './route.mjs';
export * from './ui.mjs';
export * from './words.mjs';
