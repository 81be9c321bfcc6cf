/// <reference lib="dom" />
import { syncClock, updateTimes } from './time-elements.ts';

/** Pause before the next attempt if the hub does not respond, in ms. */
const RETRY_INTERVAL = 2000;
/** After this long without an event of the hub, which sends one every 5 s, it does not respond, in ms. */
const SILENCE_LIMIT = 15_000;
/** After the start of a navigation, updates pause for this long, in ms. If the page is still open then, they resume. */
const UNLOAD_GRACE = 15_000;

/** Relative to this script, because a reverse proxy may show the page below a path. */
const LIVE_URL = new URL('../live', import.meta.url);

const offlineBanner = document.getElementById('offline');
let eventSource: EventSource | null = null;
let isUpdating = false;
let isUpdatePending = false;
let isUnloading = false;
let retryTimer: ReturnType<typeof setTimeout> | undefined;
let silenceTimer: ReturnType<typeof setTimeout> | undefined;

/** Keeps the page up to date while it is visible. A hidden page sends no requests. */
export function startLiveUpdates(): void {
  const isLive = document.querySelector('main[data-live]') !== null;
  // A page from the back/forward cache may be outdated, show a secret that has expired, or belong to a session that is
  // over.
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
  eventSource = new EventSource(LIVE_URL);
  for (const event of ['open', 'changed', 'heartbeat']) eventSource.addEventListener(event, limitSilence);
  // Changes before the stream opened arrive only with a new copy of the page.
  for (const event of ['open', 'changed', 'error']) eventSource.addEventListener(event, () => void updateSerially());
  limitSilence();
}

/** A browser does not notice by itself that the hub has lost its power or its network. */
function limitSilence(): void {
  clearTimeout(silenceTimer);
  silenceTimer = setTimeout(() => {
    setOnline(false);
    connect();
  }, SILENCE_LIMIT);
}

function disconnect(): void {
  clearTimeout(retryTimer);
  clearTimeout(silenceTimer);
  eventSource?.close();
  eventSource = null;
}

/** Stops updates during a navigation: loading the page again would hide the result of a form that was just sent. */
function disconnectForUnload(): void {
  disconnect();
  isUnloading = true;
  retryTimer = setTimeout(connect, UNLOAD_GRACE);
}

/** Updates the page; a call during an update causes one more update after it. */
async function updateSerially(): Promise<void> {
  isUpdatePending = true;
  if (isUpdating) return;
  isUpdating = true;
  let isOnline = true;
  try {
    while (isUpdatePending) {
      isUpdatePending = false;
      const result = await updatePage();
      if (isUnloading) return;
      if (result === 'other') location.reload();
      isOnline = result !== 'silent';
    }
  } finally {
    isUpdating = false;
  }
  setOnline(isOnline);
  clearTimeout(retryTimer);
  // After a response that is not an event stream, a browser does not reconnect automatically.
  if (!isOnline || eventSource?.readyState === EventSource.CLOSED) retryTimer = setTimeout(connect, RETRY_INTERVAL);
}

function setOnline(isOnline: boolean): void {
  if (offlineBanner === null || offlineBanner.hidden === isOnline) return;
  offlineBanner.hidden = isOnline;
  offlineBanner.textContent = isOnline ? '' : (offlineBanner.dataset['text'] ?? '');
}

/** The library idiomorph, which a separate script loads. */
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
 * Loads the page again and updates the shown one to it.
 * @returns `silent` if the hub did not respond; `other` if the session is over, or the page redirects or no longer
 * exists
 */
async function updatePage(): Promise<'shown' | 'other' | 'silent'> {
  const response = await fetchDocument(location.pathname + location.search);
  if (response === null) return 'silent';
  const fresh = response.responseXML?.querySelector('main[data-live]') ?? null;
  const shown = document.querySelector('main');
  if (fresh === null || shown === null || new URL(response.responseURL).pathname !== location.pathname) return 'other';
  document.title = response.responseXML?.title ?? document.title;
  Idiomorph.morph(shown, fresh, { ignoreActiveValue: true, callbacks: { beforeNodeMorphed, beforeAttributeUpdated } });
  syncClock();
  updateTimes();
  return 'shown';
}

/** Uses XMLHttpRequest because it parses HTML itself: trusted types forbid to turn text into markup by script. */
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

/** Keeps what a person has ticked or typed. */
function beforeNodeMorphed(old: Node): boolean {
  if (old instanceof HTMLInputElement) return old.value === old.defaultValue && old.checked === old.defaultChecked;
  return true;
}

/** Keeps open what a person has opened. */
function beforeAttributeUpdated(name: string, element: Element): boolean {
  return !(name === 'open' && element instanceof HTMLDetailsElement);
}
