/// <reference lib="dom" />
import { syncClock, updateTimes } from './time-elements.ts';

/** After this, in ms, a hub that does not answer is asked again. */
const RETRY_INTERVAL = 2000;
/** So long a page is left alone that somebody is about to leave, in ms: by then the hub has answered, or they are still here. */
const UNLOAD_GRACE = 15_000;

const offlineBanner = document.getElementById('offline');
let eventSource: EventSource | null = null;
let isUpdating = false;
let isUpdatePending = false;
let isUnloading = false;
let retryTimer: ReturnType<typeof setTimeout> | undefined;

/** Follows what happens at the hub while somebody looks: a phone in a pocket asks nothing. */
export function startLiveUpdates(): void {
  const isLive = document.querySelector('main[data-live]') !== null;
  // A page that comes back from the browser's memory has the state of then, a secret on it that is shown no longer, and a session that is over.
  addEventListener('pageshow', ({ persisted }) => persisted && (isLive ? connect() : location.reload()));
  if (!isLive) return;
  document.addEventListener('visibilitychange', connect);
  addEventListener('pagehide', disconnect);
  addEventListener('beforeunload', disconnectForUnload);
  connect();
}

function connect(): void {
  disconnect();
  isUnloading = false;
  if (document.visibilityState === 'hidden') return;
  eventSource = new EventSource('/live');
  // What happened before it listened is on a fresh page alone.
  eventSource.addEventListener('open', () => void updateSerially());
  eventSource.addEventListener('changed', () => void updateSerially());
  eventSource.addEventListener('error', () => void updateSerially());
}

function disconnect(): void {
  clearTimeout(retryTimer);
  eventSource?.close();
  eventSource = null;
}

/** A page that is read again keeps a form that was just sent from showing what came of it. */
function disconnectForUnload(): void {
  disconnect();
  isUnloading = true;
  retryTimer = setTimeout(connect, UNLOAD_GRACE);
}

/** Shows what there is now, never twice at a time. */
async function updateSerially(): Promise<void> {
  isUpdatePending = true;
  if (isUpdating) return;
  isUpdating = true;
  let isThere = true;
  try {
    while (isUpdatePending) {
      isUpdatePending = false;
      const found = await updatePage();
      if (isUnloading) return;
      if (found === 'other') location.reload();
      isThere = found !== 'silent';
    }
  } finally {
    isUpdating = false;
  }
  setOnline(isThere);
  clearTimeout(retryTimer);
  // A browser that was answered with anything but events tries no more by itself.
  if (!isThere || eventSource?.readyState === EventSource.CLOSED) retryTimer = setTimeout(connect, RETRY_INTERVAL);
}

function setOnline(isThere: boolean): void {
  if (offlineBanner === null || offlineBanner.hidden === isThere) return;
  offlineBanner.hidden = isThere;
  offlineBanner.textContent = isThere ? '' : (offlineBanner.dataset['text'] ?? '');
}

/** The library of that name, a script of its own (idiomorph.js). */
declare const Idiomorph: {
  morph(
    old: Element,
    fresh: Element,
    options: {
      readonly ignoreActiveValue: boolean;
      readonly callbacks: {
        beforeNodeMorphed(old: Node): boolean;
        beforeAttributeUpdated(name: string, element: Element): boolean;
      };
    },
  ): void;
};

/**
 * Reads the page that is shown once more, and brings what is shown in line with it.
 * @returns `silent` where the hub did not answer; `other` where the session is over, or the page leads elsewhere by now, or
 *   is no longer there
 */
async function updatePage(): Promise<'shown' | 'other' | 'silent'> {
  const answer = await fetchDocument(location.pathname + location.search);
  if (answer === null) return 'silent';
  const fresh = answer.responseXML?.querySelector('main[data-live]') ?? null;
  const shown = document.querySelector('main');
  if (fresh === null || shown === null || new URL(answer.responseURL).pathname !== location.pathname) return 'other';
  document.title = answer.responseXML?.title ?? document.title;
  Idiomorph.morph(shown, fresh, { ignoreActiveValue: true, callbacks: { beforeNodeMorphed, beforeAttributeUpdated } });
  syncClock();
  updateTimes();
  return 'shown';
}

/** An XMLHttpRequest reads HTML without making text into markup by script, which trusted types forbid. */
function fetchDocument(path: string): Promise<XMLHttpRequest | null> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('GET', path);
    request.responseType = 'document';
    request.timeout = 15_000;
    request.onload = () => resolve(request.status >= 500 ? null : request);
    request.onerror = () => resolve(null);
    request.ontimeout = () => resolve(null);
    request.send();
  });
}

/** What a person has ticked or typed stays. */
function beforeNodeMorphed(old: Node): boolean {
  if (old instanceof HTMLInputElement) return old.value === old.defaultValue && old.checked === old.defaultChecked;
  return true;
}

/** What a person has opened stays open. */
function beforeAttributeUpdated(name: string, element: Element): boolean {
  return !(name === 'open' && element instanceof HTMLDetailsElement);
}
