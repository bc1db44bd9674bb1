// Talks to the command: asks for the state of the cluster, and for changes.

const POLL_MS = 1_000;

// The address bar and its history keep no token. The tab keeps it for when it is loaded again.
const token = new URLSearchParams(location.hash.slice(1)).get('token');
if (token !== null) {
  sessionStorage.setItem('token', token);
  history.replaceState(null, '', location.pathname);
}
// The address of a restarted command may differ only in the token, which loads nothing.
addEventListener('hashchange', () => location.reload());

function ask(path, options) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem('token')}` };
  return fetch(`/api/${path}`, { ...options, headers });
}

/** Asks for a change. Resolves with `{ done, text, answer }`, and never rejects. */
export async function change(action, body = {}) {
  try {
    const answer = await ask(action, { method: 'POST', body: JSON.stringify(body) });
    const result = await answer.json();
    return answer.ok ? result : { done: false, text: result.error.message };
  } catch {
    return { done: false, text: 'The dashboard command does not answer.' };
  }
}

/** Passes on the state of the cluster every second while the page is visible, until it is refused. */
export async function follow(show) {
  for (let since = 0; ;) {
    while (document.hidden) {
      await new Promise((resolve) => {
        document.addEventListener('visibilitychange', resolve, { once: true });
      });
    }
    const { error, ...state } = await stateSince(since);
    if (error !== undefined) return show({ status: undefined, problem: error.message });
    since = state.rows?.at(-1)?.at ?? since;
    show(state);
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
    });
  }
}

async function stateSince(since) {
  try {
    return await (await ask(`state?since=${since}`)).json();
  } catch {
    return { problem: 'the dashboard command does not answer' };
  }
}
