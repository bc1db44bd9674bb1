// The functions that block the event loops, after a profile.
import { html } from 'htm/preact/standalone';
import { ms, NONE, percent } from './format.js';

export function Advice({ advice, actions, canChange }) {
  return html`
    <section>
      <h2 id="advice">Blocking functions</h2>
      ${
        canChange !== 'never' &&
        html`<button
          type="button"
          disabled=${canChange !== 'now'}
          onClick=${() => actions.run('advise', {}, 'Profiling all workers for 20 s')}
        >
          Profile for 20 s
        </button>`
      }
      ${advice && (advice.nothing === null ? html`<${Functions} ...${advice} />` : html`<p class="meta">Nothing to gain: ${advice.nothing}.</p>`)}
    </section>
  `;
}

function Functions({ functions, waitP99Ms }) {
  return html`
    <p class="meta">The p99 wait for the event loop is at least ${ms(waitP99Ms)}.</p>
    <div class="scroll" role="region" aria-labelledby="advice" tabindex="0">
      <table>
        <thead>
          <tr>
            <th scope="col">Function</th>
            <th scope="col" class="number">Share</th>
            <th scope="col" class="number">Longest</th>
            <th scope="col" class="number">p99 without it</th>
            <th scope="col">Place</th>
            <th scope="col" class="exit">Remedy</th>
          </tr>
        </thead>
        <tbody>
          ${functions.map(
            (each) => html`
              <tr key=${`${each.name} ${each.place}`}>
                <th scope="row">${each.name}</th>
                <td class="number">${percent(each.share)}</td>
                <td class="number">${ms(each.longestMs)}</td>
                <td class="number">${ms(each.waitP99WithoutMs)}</td>
                <td>${each.place ?? NONE}</td>
                <td class="exit">${each.remedy}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}
