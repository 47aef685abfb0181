// All keys, as the help lists them. Each has a button or a link, too.

export const KEYS = [
  ['g s', 'Sessions'],
  ['g i', 'Inbox'],
  ['g d', 'Definitions'],
  ['1 8', 'Parts of a session: the first to the eighth'],
  ['j k', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['Esc', 'Close the pane, back to the row'],
  ['{ }', 'Previous and next question, failure or doubt'],
  ['[ ]', 'Previous and next call of the same agent (contexts)'],
  ['.', 'Follow the end'],
  ['c', 'Say something'],
  ['s', 'Stop: cancel what is open'],
  ['a', 'Move to the answer of the first question'],
  ['/', 'Filter'],
  ['t', 'Light or dark'],
  ['?', 'These keys'],
];
