// Preact and its templates, in one place for all screens.

import htm from './vendor/htm.mjs';
import { h, Fragment, render, createContext } from './vendor/preact.mjs';
import {
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from './vendor/hooks.mjs';

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);
export {
  Fragment,
  createContext,
  render,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
};
