import type { LoggedRequest } from '../../http/logged-request.ts';
import { CHANGED_EVENT, callApi } from './api.ts';
import { clockSection } from './clock.ts';
import { createElement, requireElement } from './dom.ts';
import { faultsSection, setUpFaultForm } from './faults.ts';
import { findingsSection, grantsSection, loginsSection } from './lists.ts';
import { addRequest, requestsSection } from './requests.ts';
import type { PageSection } from './section.ts';
import { settingsSection } from './settings.ts';

/** The parts by what a `change` event calls them. */
const sectionsByTopic: Readonly<Record<string, PageSection>> = {
  clock: clockSection,
  faults: faultsSection,
  findings: findingsSection,
  grants: grantsSection,
  logins: loginsSection,
  requests: requestsSection,
  settings: settingsSection,
};

const connectionStatus = requireElement('#live', HTMLElement);
const pendingSections = new Set<PageSection>();
let refreshing = false;

/** Reads parts again, at most once a frame and never twice at a time. */
async function refresh(...these: readonly PageSection[]): Promise<void> {
  for (const one of these) pendingSections.add(one);
  if (refreshing) return;
  refreshing = true;
  while (pendingSections.size > 0) {
    const now = [...pendingSections];
    pendingSections.clear();
    await Promise.allSettled(now.map((one) => one.refresh()));
    await new Promise(requestAnimationFrame);
  }
  refreshing = false;
  showSectionLinks();
}

function refreshAll(): void {
  void refresh(...Object.values(sectionsByTopic));
}

/** The links to the sections that are there, for phones. */
function showSectionLinks(): void {
  const sections = [...document.querySelectorAll('main section:not([hidden])')];
  const links = sections.map((one) =>
    createElement('a', { href: `#${one.id}` }, one.querySelector('h2')?.textContent ?? ''),
  );
  requireElement('#sections', HTMLElement).replaceChildren(...links);
}

let events: EventSource | null = null;

/** Listens to the emulator while somebody looks: a browser has few connections to one origin. */
function subscribeToEvents(): void {
  events?.close();
  if (document.visibilityState === 'hidden') return;
  events = new EventSource('/_emulator/events');
  events.addEventListener('open', () => {
    showConnectionStatus('live');
    refreshAll();
  });
  events.addEventListener('error', () => showConnectionStatus('not connected'));
  events.addEventListener('request', ({ data }) => {
    addRequest(JSON.parse(data) as LoggedRequest);
    void refresh(findingsSection);
  });
  events.addEventListener('change', ({ data }) => {
    const one = sectionsByTopic[(JSON.parse(data) as { readonly what: string }).what];
    // With time logins expire, too.
    if (one === undefined || one === clockSection) refreshAll();
    else void refresh(one);
  });
}

function showConnectionStatus(text: 'live' | 'not connected'): void {
  connectionStatus.textContent = text;
  connectionStatus.className = text === 'live' ? 'on' : 'off';
}

/** The button that resets the emulator, once a person has said yes. */
function setUpResetButton(): void {
  const button = requireElement('#reset', HTMLButtonElement);
  const dialog = requireElement('#ask-reset', HTMLDialogElement);
  button.hidden = false;
  button.addEventListener('click', () => {
    dialog.returnValue = '';
    dialog.showModal();
  });
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'reset') void callApi('POST', 'reset', {}, 'The emulator is as it was at its start.');
  });
}

document.addEventListener('visibilitychange', subscribeToEvents);
setUpFaultForm();
setUpResetButton();
document.addEventListener(CHANGED_EVENT, refreshAll);
refreshAll();
subscribeToEvents();
