// The confirmation dialogs.
import { html, useLayoutEffect, useRef, useState } from 'htm/preact/standalone';

const MAX_WORKERS = 256;

/** The keys are the kinds of dialogs. */
const KINDS = {
  reload: () => ({
    title: 'Reload all workers?',
    text: 'Replaces all workers with the current version of the program. No request is lost.',
    confirm: 'Reload',
    busy: 'Reloading',
  }),
  scale: () => ({
    title: 'Change the number of workers?',
    text: 'Surplus workers finish their requests first.',
    confirm: 'Scale',
    busy: 'Scaling',
  }),
  restart: ({ slot }) => ({
    title: `Restart worker ${slot}?`,
    text: 'A new worker is ready before this one leaves. No request is lost.',
    confirm: 'Restart',
    busy: `Restarting worker ${slot}`,
  }),
  stop: () => ({
    title: 'Stop the cluster?',
    text: 'Every worker finishes its requests and ends, then the primary. This page cannot start the cluster again.',
    confirm: 'Stop the cluster',
    busy: 'Stopping the cluster',
    danger: true,
  }),
};

export function Confirmation({ dialog, cluster, actions }) {
  const { kind, slot } = dialog;
  const { title, text, confirm, busy, danger } = KINDS[kind](dialog);
  const element = useRef(null);
  const [workers, setWorkers] = useState(cluster.desired);
  useLayoutEffect(() => {
    element.current.showModal();
  }, []);
  const run = (event) => {
    event.preventDefault();
    const body = kind === 'scale' ? { workers } : kind === 'restart' ? { slot } : {};
    void actions.run(kind, body, busy);
  };
  return html`
    <dialog ref=${element} aria-labelledby="question" onClose=${actions.close}>
      <form onSubmit=${run}>
        <h2 id="question">${title}</h2>
        <p>${text}</p>
        ${
          kind === 'scale' &&
          html`<label>
            Workers
            <input
              type="number"
              name="workers"
              required
              min="1"
              max=${MAX_WORKERS}
              value=${workers}
              onInput=${(event) => setWorkers(event.currentTarget.valueAsNumber)}
            />
          </label>`
        }
        <div class="buttons">
          <button type="button" onClick=${() => element.current.close()}>Cancel</button>
          <button type="submit" class=${danger ? 'danger' : 'primary'}>${confirm}</button>
        </div>
      </form>
    </dialog>
  `;
}
