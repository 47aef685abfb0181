// Server-sent events, as the standard of HTML defines their framing. Pure.

export class Frames {
  #rest = '';

  push(piece) {
    this.#rest += piece;
    const events = [];
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.#rest);
      if (!end) return events;
      const event = frame(this.#rest.slice(0, end.index));
      this.#rest = this.#rest.slice(end.index + end[0].length);
      if (event) events.push(event);
    }
  }
}

/** Reads one frame. A comment is none. */
function frame(text) {
  const event = { event: 'message', data: null, id: null };
  for (const row of text.split(/\r\n|\n|\r/)) {
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(row);
    if (field === 'data') event.data = event.data === null ? (value ?? '') : `${event.data}\n${value ?? ''}`;
    else if (field === 'event') event.event = value ?? '';
    else if (field === 'id') event.id = value ?? '';
  }
  return event.data === null ? null : event;
}
