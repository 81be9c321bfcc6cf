/// <reference lib="dom" />
import { showNewer } from './newer-page.ts';

/** After this, in ms, a hub that does not answer is asked again. */
const AGAIN = 2000;
/** So long a page is left alone that somebody is about to leave, in ms: by then the hub has answered, or they are still here. */
const LEAVING = 15_000;

const offline = document.getElementById('offline');
let events: EventSource | null = null;
let showing = false;
let due = false;
let leaving = false;
let retry: ReturnType<typeof setTimeout> | undefined;

/** Follows what happens at the hub while somebody looks: a phone in a pocket asks nothing. */
export function follow(): void {
  const isLive = document.querySelector('main[data-live]') !== null;
  // A page that comes back from the browser's memory has the state of then, a secret on it that is shown no longer, and a session that is over.
  addEventListener('pageshow', ({ persisted }) => persisted && (isLive ? listen() : location.reload()));
  if (!isLive) return;
  document.addEventListener('visibilitychange', listen);
  addEventListener('pagehide', leave);
  addEventListener('beforeunload', letGo);
  listen();
}

function listen(): void {
  leave();
  leaving = false;
  if (document.visibilityState === 'hidden') return;
  events = new EventSource('/live');
  // What happened before it listened is on a fresh page alone.
  events.addEventListener('open', () => void show());
  events.addEventListener('changed', () => void show());
  events.addEventListener('error', () => void show());
}

function leave(): void {
  clearTimeout(retry);
  events?.close();
  events = null;
}

/** A page that is read again keeps a form that was just sent from showing what came of it. */
function letGo(): void {
  leave();
  leaving = true;
  retry = setTimeout(listen, LEAVING);
}

/** Shows what there is now, never twice at a time. */
async function show(): Promise<void> {
  due = true;
  if (showing) return;
  showing = true;
  let isThere = true;
  try {
    while (due) {
      due = false;
      const found = await showNewer();
      if (leaving) return;
      if (found === 'other') location.reload();
      isThere = found !== 'silent';
    }
  } finally {
    showing = false;
  }
  tell(isThere);
  clearTimeout(retry);
  // A browser that was answered with anything but events tries no more by itself.
  if (!isThere || events?.readyState === EventSource.CLOSED) retry = setTimeout(listen, AGAIN);
}

function tell(isThere: boolean): void {
  if (offline === null || offline.hidden === isThere) return;
  offline.hidden = isThere;
  offline.textContent = isThere ? '' : (offline.dataset['text'] ?? '');
}
