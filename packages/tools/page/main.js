// Starts the page: its state, and what changes it.
import { html, render } from 'htm/preact/standalone';
import { change, follow } from './session.js';
import { App } from './view.js';

const ROWS = 900;

const root = document.getElementById('page');

const state = {
  readOnly: false,
  /** The last status of the cluster, and why the status of this second is missing. */
  status: undefined,
  problem: null,
  metricsProblem: null,
  /** The figures of each second. */
  rows: [],
  log: [],
  /** The change that is asked for, and how the last one ended. */
  pending: undefined,
  outcome: undefined,
  /** The last answer of `advise`. */
  advice: undefined,
  /** The dialog that is open. */
  dialog: undefined,
};

const actions = {
  open(dialog) {
    state.dialog = dialog;
    show();
  },
  close() {
    state.dialog = undefined;
    show();
  },
  forget() {
    state.outcome = undefined;
    show();
  },
  async run(name, body, words) {
    state.dialog = undefined;
    state.outcome = undefined;
    state.pending = words;
    show();
    state.outcome = await change(name, body);
    if (name === 'advise' && state.outcome.done) state.advice = state.outcome.answer;
    state.pending = undefined;
    show();
  },
};

function show() {
  render(html`<${App} state=${state} actions=${actions} canChange=${canChange()} />`, root);
}

function canChange() {
  const { readOnly, problem, pending } = state;
  if (readOnly) return 'never';
  return problem === null && pending === undefined ? 'now' : 'later';
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
root.replaceChildren();
void follow(({ rows = [], ...rest }) => {
  Object.assign(state, rest, { rows: [...state.rows, ...rows].slice(-ROWS) });
  show();
});
