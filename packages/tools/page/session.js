// Talks to the command: listens, and asks for changes.

const RETRY_MS = 2_000;

/** Asks for a change. Resolves with `{ done, text, answer }`, and never rejects. */
export async function change(action, body = {}) {
  try {
    const answer = await fetch(`/api/${action}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const result = await answer.json();
    return answer.ok ? result : { done: false, text: result.error.message };
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
