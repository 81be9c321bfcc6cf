import type { LoggedRequest } from '../../http/logged-request.ts';
import { CHANGED, change } from './api.ts';
import { clock } from './clock.ts';
import { find, make } from './dom.ts';
import { faults, offerFaults } from './faults.ts';
import { findings, grants, logins } from './lists.ts';
import type { Part } from './part.ts';
import { addRequest, requests } from './requests.ts';
import { settings } from './settings.ts';

/** The parts by what a `change` event calls them. */
const parts: Readonly<Record<string, Part>> = { clock, faults, findings, grants, logins, requests, settings };

const live = find('#live', HTMLElement);
const due = new Set<Part>();
let refreshing = false;

/** Reads parts again, at most once a frame and never twice at a time. */
async function refresh(...these: readonly Part[]): Promise<void> {
  for (const one of these) due.add(one);
  if (refreshing) return;
  refreshing = true;
  while (due.size > 0) {
    const now = [...due];
    due.clear();
    await Promise.allSettled(now.map((one) => one.refresh()));
    await new Promise(requestAnimationFrame);
  }
  refreshing = false;
  showSections();
}

function refreshAll(): void {
  void refresh(...Object.values(parts));
}

/** The links to the sections that are there, for phones. */
function showSections(): void {
  const sections = [...document.querySelectorAll('main section:not([hidden])')];
  const links = sections.map((one) => make('a', { href: `#${one.id}` }, one.querySelector('h2')?.textContent ?? ''));
  find('#sections', HTMLElement).replaceChildren(...links);
}

let events: EventSource | null = null;

/** Listens to the emulator while somebody looks: a browser has few connections to one origin. */
function listen(): void {
  events?.close();
  if (document.visibilityState === 'hidden') return;
  events = new EventSource('/_emulator/events');
  events.addEventListener('open', () => {
    showLive('live');
    refreshAll();
  });
  events.addEventListener('error', () => showLive('not connected'));
  events.addEventListener('request', ({ data }) => {
    addRequest(JSON.parse(data) as LoggedRequest);
    void refresh(findings);
  });
  events.addEventListener('change', ({ data }) => {
    const one = parts[(JSON.parse(data) as { readonly what: string }).what];
    // With time logins expire, too.
    if (one === undefined || one === clock) refreshAll();
    else void refresh(one);
  });
}

function showLive(text: 'live' | 'not connected'): void {
  live.textContent = text;
  live.className = text === 'live' ? 'on' : 'off';
}

/** The button that resets the emulator, once a person has said yes. */
function offerReset(): void {
  const button = find('#reset', HTMLButtonElement);
  const dialog = find('#ask-reset', HTMLDialogElement);
  button.hidden = false;
  button.addEventListener('click', () => {
    dialog.returnValue = '';
    dialog.showModal();
  });
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'reset') void change('POST', 'reset', {}, 'The emulator is as it was at its start.');
  });
}

document.addEventListener('visibilitychange', listen);
offerFaults();
offerReset();
document.addEventListener(CHANGED, refreshAll);
refreshAll();
listen();
