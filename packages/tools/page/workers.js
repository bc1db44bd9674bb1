// The slots: as a strip at a glance, and as a table.
import { html } from 'htm/preact/standalone';
import { age, bytes, count, ms, NONE, percent, time } from './format.js';

/** More slots than these are shown small. */
const ROOMY = 32;

/** A worker whose last heartbeat is older than three pings does not answer. */
const LATE_MS = 3_000;

const GLYPHS = {
  ready: '●',
  starting: '◐',
  draining: '○',
  exited: '✕',
  silent: '!',
};
const WORDS = { exited: 'restarting', silent: 'no answer' };

/** The state that the primary reports, or `silent`. */
function stateOf({ state, heartbeatAgeMs }) {
  return state === 'ready' && heartbeatAgeMs > LATE_MS ? 'silent' : state;
}

export function SlotStrip({ cluster: { workers } }) {
  return html`
    <section aria-label="Workers at a glance">
      <ol class="strip ${workers.length > ROOMY ? 'small' : ''}">
        ${workers.map((worker) => {
          const state = stateOf(worker);
          const word = WORDS[state] ?? state;
          return html`
            <li key=${keyOf(worker)} class=${state} title=${`worker ${worker.slot}: ${word}`}>
              <span class="glyph" aria-hidden="true">${GLYPHS[state]}</span>
              <strong>${worker.slot}</strong>
              <span class="detail">
                ${word}<br />gen ${worker.generation}, ${age(worker.uptimeSeconds)}
              </span>
            </li>
          `;
        })}
      </ol>
    </section>
  `;
}

const HEADS = [
  ['Worker'],
  ['State'],
  ['Pid', 'wide number'],
  ['Gen.', 'number'],
  ['Age', 'number'],
  ['Busy', 'number'],
  ['Loop delay', 'number'],
  ['Memory', 'number'],
  ['Heap', 'wide number'],
  ['Conn.', 'number'],
  ['In flight', 'number'],
  ['Requests', 'wide number'],
  ['Restarts', 'number'],
  ['Last exit'],
];

export function WorkerTable({ cluster: { workers }, actions, canChange }) {
  const mayRestart = canChange !== 'never';
  return html`
    <section>
      <h2 id="workers">Workers</h2>
      <div class="scroll" role="region" aria-labelledby="workers" tabindex="0">
        <table>
          <thead>
            <tr>
              ${HEADS.map(([name, kind]) => html`<th scope="col" class=${kind}>${name}</th>`)}
              ${mayRestart && html`<th scope="col" class="action"><span>Action</span></th>`}
            </tr>
          </thead>
          <tbody>
            ${workers.map((worker) => {
              const state = stateOf(worker);
              const { lastExit } = worker;
              return html`
                <tr key=${keyOf(worker)}>
                  <th scope="row">${worker.slot}</th>
                  <td class=${`state ${state}`}>
                    <span class="glyph" aria-hidden="true">${GLYPHS[state]}</span>
                    ${` ${WORDS[state] ?? state}`}
                  </td>
                  <td class="wide number">${worker.pid ?? NONE}</td>
                  <td class="number">${worker.generation}</td>
                  <td class="number">${age(worker.uptimeSeconds)}</td>
                  <td class="number">${percent(worker.eventLoopUtilization)}</td>
                  <td class="number">${ms(worker.eventLoopDelayP99Ms)}</td>
                  <td class="number">${bytes(worker.residentMemoryBytes)}</td>
                  <td class="wide number">${bytes(worker.heapUsedBytes)}</td>
                  <td class="number">${count(worker.openConnections)}</td>
                  <td class="number">${count(worker.requestsInFlight)}</td>
                  <td class="wide number">${count(worker.requestsTotal)}</td>
                  <td class="number">${count(worker.restarts)}</td>
                  <td class="exit">${lastExit === null ? NONE : exitOf(lastExit)}</td>
                  ${
                    mayRestart &&
                    html`<td class="action">
                      ${
                        state !== 'draining' &&
                        html`<button
                          type="button"
                          aria-label=${`Restart worker ${worker.slot}`}
                          disabled=${canChange !== 'now'}
                          onClick=${() => actions.open({ kind: 'restart', slot: worker.slot })}
                        >
                          Restart
                        </button>`
                      }
                    </td>`
                  }
                </tr>
              `;
            })}
          </tbody>
        </table>
      </div>
    </section>
  `;
}

function exitOf({ cause, code, signal, at }) {
  return `${cause} (${signal ?? `code ${code}`}), ${time(at)}`;
}

/** A slot that is being replaced has two processes. */
function keyOf({ slot, pid }) {
  return `${slot}/${pid}`;
}
