// Talks to the command: opens the session of a link, listens, and asks for changes.

/** This key is for one address and port, unlike the cookie: a change needs both. */
const KEY = 'nestjs-cluster-token';

const RETRY_MS = 2_000;

/** Opens the dashboard. Throws an Error whose message is for people. */
export async function openSession() {
  const [, token] = /^#token=([\w-]+)$/.exec(location.hash) ?? [];
  // The token need not stay in the history.
  if (location.hash !== '') history.replaceState(null, '', '/');
  let refusal;
  if (token !== undefined) {
    const answer = await ask('/api/session', { token });
    if (answer.ok) {
      localStorage.setItem(KEY, (await answer.json()).token);
      return;
    }
    refusal = await reasonOf(answer);
  }
  const answer = await fetch('/api/session');
  // A wrong link does no harm to a browser that has opened the right one.
  if (!answer.ok) throw new Error(refusal ?? (await reasonOf(answer)));
}

/** Whether this browser may ask for changes: it was the one to open the link. */
export function mayChange() {
  return localStorage.getItem(KEY) !== null;
}

/** Asks for a change. Resolves with `{ done, text, answer }`, and never rejects. */
export async function change(action, body = {}) {
  try {
    const answer = await ask(`/api/${action}`, body);
    if (answer.ok) return await answer.json();
    return { done: false, text: await reasonOf(answer) };
  } catch {
    return { done: false, text: 'The dashboard command does not answer.' };
  }
}

/**
 * Listens for as long as the page can be seen: a hidden one costs nothing, and gets the
 * history when it is looked at again.
 */
export function listen(names, told, lost) {
  let source;
  let retry;
  const open = () => {
    clearTimeout(retry);
    source?.close();
    source = new EventSource('/api/events');
    for (const name of names) {
      source.addEventListener(name, (event) => told(name, JSON.parse(event.data)));
    }
    source.addEventListener('error', () => {
      lost();
      // The browser connects again by itself, unless it was refused.
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    });
  };
  document.addEventListener('visibilitychange', () => {
    clearTimeout(retry);
    if (document.hidden) source?.close();
    else open();
  });
  if (!document.hidden) open();
}

function ask(path, body) {
  return fetch(path, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Dashboard-Token': localStorage.getItem(KEY) ?? '',
    },
    body: JSON.stringify(body),
  });
}

async function reasonOf(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return `The answer was ${answer.status}.`;
  }
}
