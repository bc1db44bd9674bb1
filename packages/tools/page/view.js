// The whole page, from its state.
import { html } from 'htm/preact/standalone';
import { Advice } from './advice.js';
import { Charts } from './chart.js';
import { Confirmation } from './dialogs.js';
import { age, bytes, count, ms, NONE, percent, time } from './format.js';
import { SlotStrip, WorkerTable } from './workers.js';

export function App({ state, actions, canChange }) {
  const { status, rows, dialog } = state;
  if (status === undefined) {
    return html`<p class="notice" role="status">
      ${state.problem ?? 'Connecting to the cluster …'}
    </p>`;
  }
  const { name, cluster, primary } = status;
  return html`
    <${Header} ...${{ name, cluster, primary, actions, canChange }} />
    <main class=${state.problem === null ? '' : 'stale'}>
      <${Notices} ...${{ state, cluster, actions }} />
      <${SlotStrip} cluster=${cluster} />
      <${Tiles} cluster=${cluster} row=${rows.at(-1)} />
      <${Charts} rows=${rows} problem=${state.metricsProblem}><${Restarts} cluster=${cluster} /><//>
      <${WorkerTable} ...${{ cluster, actions, canChange }} />
      <${Advice} ...${{ advice: state.advice, actions, canChange }} />
      <${Log} entries=${state.log} />
    </main>
    <footer>
      ${name}, primary pid ${status.pid}, Node ${status.node}
      ${status.version && `, nestjs-cluster ${status.version}`}, balancing ${cluster.balancing}
      ${primary && `, primary ${bytes(primary.residentMemoryBytes)}`}
    </footer>
    ${dialog && html`<${Confirmation} ...${{ dialog, cluster, actions }} />`}
  `;
}

function Header({ name, cluster, primary, actions, canChange }) {
  const button = (kind, label) => html`
    <button
      type="button"
      class=${kind === 'stop' ? 'danger' : ''}
      disabled=${canChange !== 'now'}
      onClick=${() => actions.open({ kind })}
    >
      ${label}
    </button>
  `;
  return html`
    <header>
      <div class="title">
        <h1>${name}</h1>
        <span class="status ${cluster.status}">${cluster.status}</span>
        <span class="meta">
          ${cluster.ready} of ${cluster.desired} ready, generation
          ${` ${cluster.generation}`}${primary && `, up ${age(primary.uptimeSeconds)}`}
        </span>
      </div>
      ${
        canChange === 'never'
          ? html`<p class="meta">read-only</p>`
          : html`<div class="actions" role="group" aria-label="Change the cluster">
              ${button('reload', 'Reload')} ${button('scale', 'Scale')} ${button('stop', 'Stop')}
            </div>`
      }
    </header>
  `;
}

function Notices({ state: { problem, pending, outcome }, cluster, actions }) {
  return html`
    <div role="alert">
      ${
        problem !== null &&
        html`<p class="banner bad">Not live: ${problem}. The page continues by itself.</p>`
      }
    </div>
    <div role="status">
      ${cluster.reason && html`<p class="banner warn">${cluster.reason}</p>`}
      ${pending && html`<p class="banner busy">${pending} …</p>`}
      ${
        outcome &&
        html`<p class="banner ${outcome.done ? 'done' : 'bad'}">
          <span>${outcome.text}</span>
          <button type="button" class="plain" aria-label="Dismiss" onClick=${actions.forget}>
            ×
          </button>
        </p>`
      }
    </div>
  `;
}

function Tiles({ cluster, row }) {
  const last = (name) => row[name] ?? null;
  const tiles = [
    ['Requests', count(last('requests')), 'a second'],
    ['Latency p99', ms(last('p99Ms')), last('p50Ms') === null ? '' : `p50 ${ms(last('p50Ms'))}`],
    ['In flight', count(last('inFlight')), 'requests'],
    ['Connections', count(last('connections')), 'open'],
    ['Loop delay p99', ms(last('delayWorstMs')), 'worst worker'],
    [
      'Utilisation',
      percent(last('utilizationWorst')),
      `worst, mean ${percent(last('utilizationMean'))}`,
    ],
    ['Memory', bytes(last('residentBytes')), `heap ${bytes(last('heapBytes'))}`],
    ['Restarts', count(restartsOf(cluster)), 'since the start'],
  ];
  return html`
    <section aria-label="Now">
      <dl class="tiles">
        ${tiles.map(
          ([name, value, more]) => html`
            <div key=${name}>
              <dt>${name}</dt>
              <dd>${value} <small>${value === NONE ? '' : more}</small></dd>
            </div>
          `,
        )}
      </dl>
    </section>
  `;
}

function restartsOf({ restartsByCause }) {
  return Object.values(restartsByCause ?? {}).reduce((sum, each) => sum + each, 0);
}

function Restarts({ cluster: { restartsByCause = {} } }) {
  const causes = Object.entries(restartsByCause).toSorted(([, a], [, b]) => b - a);
  return html`
    <figure>
      <figcaption><h3>Restarts by cause</h3></figcaption>
      ${
        causes.length === 0
          ? html`<p class="missing">No worker has failed since the primary started.</p>`
          : html`<table class="causes">
              <thead>
                <tr>
                  <th scope="col">Cause</th>
                  <th scope="col" class="number">Restarts</th>
                </tr>
              </thead>
              <tbody>
                ${causes.map(
                  ([cause, times]) => html`
                    <tr key=${cause}>
                      <th scope="row">${cause}</th>
                      <td class="number">${times}</td>
                    </tr>
                  `,
                )}
              </tbody>
            </table>`
      }
    </figure>
  `;
}

function Log({ entries }) {
  return html`
    <section class="log">
      <h2 id="log">Events</h2>
      <div role="log" aria-live="polite" aria-labelledby="log" tabindex="0">
        ${entries.length === 0 && html`<p class="meta">No events yet.</p>`}
        <ul>
          ${entries.toReversed().map(
            ({ at, level, text }) => html`
              <li key=${at + text} class=${level}>
                <time datetime=${at}>${time(at)}</time>
                <span class="level">${level}</span>
                <span>${text}</span>
              </li>
            `,
          )}
        </ul>
      </div>
    </section>
  `;
}
