// Routes live behind `#`, so that no server and no proxy sees an id of a session. Pure.

/** Reads the part of an address behind `#`: `#/s/abc/effects?at=3`. */
export function read(hash) {
  const text = hash.startsWith('#') ? hash.slice(1) : hash;
  const [path, search = ''] = text.split(/\?(.*)/s);
  const parts = path.split('/').filter(Boolean).map(decoded);
  return { parts, query: Object.fromEntries(new URLSearchParams(search)) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns a path with a query. Values that are missing are left out. */
export function place(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const search = new URLSearchParams(kept).toString();
  return `${parts.map(encodeURIComponent).join('/')}${search ? `?${search}` : ''}`;
}

/** Returns the address of a screen. */
export function link(parts, query) {
  return `#/${place(parts, query)}`;
}
