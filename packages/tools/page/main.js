// Starts the page: its state, and what changes it.
import { html, render } from 'htm/preact/standalone';
import { change, listen, mayChange, openSession } from './session.js';
import { App, Refused } from './view.js';

const ROWS = 900;
const LOG = 300;

const root = document.getElementById('page');

const state = {
  hello: undefined,
  link: { state: 'connecting', message: null },
  sample: undefined,
  metrics: { url: null, problem: null },
  /** The keys are the names of columns, each with an array of its values. */
  series: {},
  columns: [],
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

let lines = 0;

/** A screen reader does not read a line again that is shown already. */
function numbered(entry) {
  lines += 1;
  return { ...entry, id: lines };
}

const told = {
  hello(hello) {
    state.hello = hello;
    state.metrics = hello.metrics;
  },
  history({ columns, rows, log }) {
    state.columns = columns;
    state.series = Object.fromEntries(columns.map((name, i) => [name, rows.map((row) => row[i])]));
    state.log = log.map(numbered);
  },
  link(link) {
    state.link = link;
  },
  sample({ row, cluster, primary, metrics }) {
    state.sample = { cluster, primary };
    if (metrics === undefined) return; // it is in the history
    state.metrics = metrics;
    for (const [i, name] of state.columns.entries()) {
      const values = state.series[name];
      values.push(row[i]);
      if (values.length > ROWS) values.shift();
    }
  },
  log(entry) {
    state.log.push(numbered(entry));
    if (state.log.length > LOG) state.log.shift();
  },
};

function show() {
  render(html`<${App} state=${state} actions=${actions} canChange=${canChange()} />`, root);
}

function canChange() {
  const { hello, link, pending } = state;
  if (hello === undefined || hello.readOnly || !mayChange()) return 'never';
  return link.state === 'connected' && pending === undefined ? 'now' : 'later';
}

function follow() {
  listen(
    Object.keys(told),
    (name, data) => {
      told[name](data);
      if (name === 'sample' || name === 'log' || name === 'link') show();
    },
    () => {
      state.link = { state: 'lost', message: 'the dashboard command does not answer' };
      show();
    },
  );
}

async function start() {
  try {
    await openSession();
  } catch (error) {
    return render(html`<${Refused} why=${error.message} />`, root);
  }
  root.replaceChildren();
  follow();
}

// A link that is opened where the page is open already changes the fragment alone.
addEventListener('hashchange', () => location.reload());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
await start();
