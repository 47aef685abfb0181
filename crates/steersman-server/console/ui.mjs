// Preact and its templates, in one place for all screens.

import htm from './vendor/htm.mjs';
import { h } from './vendor/preact.mjs';

export { Fragment, createContext, render } from './vendor/preact.mjs';
export * from './vendor/hooks.mjs';

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);
