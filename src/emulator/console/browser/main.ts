import type { LoggedRequest } from '../../http/logged-request.ts';
import { callApi } from './api.ts';
import { clockSection } from './clock.ts';
import { requireElement } from './dom.ts';
import { faultsSection, setUpFaultForm } from './faults.ts';
import { devicesSection, findingsSection, grantsSection, loginsSection } from './lists.ts';
import { addRequest, requestsSection } from './requests.ts';
import type { PageSection } from './section.ts';
import { settingsSection } from './settings.ts';

/** The sections, by their names in `change` events. */
const sectionsByTopic: Readonly<Record<string, PageSection>> = {
  clock: clockSection,
  devices: devicesSection,
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

/** Refreshes sections, at most once per frame and never concurrently. */
async function refresh(...sections: readonly PageSection[]): Promise<void> {
  for (const section of sections) pendingSections.add(section);
  if (refreshing) return;
  refreshing = true;
  while (pendingSections.size > 0) {
    const batch = [...pendingSections];
    pendingSections.clear();
    await Promise.allSettled(batch.map((section) => section()));
    await new Promise(requestAnimationFrame);
  }
  refreshing = false;
}

function refreshAll(): void {
  void refresh(...Object.values(sectionsByTopic));
}

let events: EventSource | null = null;

/** Follows the events while the page is visible, because a browser limits the connections to one origin. */
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
    const section = sectionsByTopic[(JSON.parse(data) as { readonly what: string }).what];
    // The clock also makes logins expire.
    if (section === undefined || section === clockSection) refreshAll();
    else void refresh(section);
  });
}

function showConnectionStatus(text: 'live' | 'not connected'): void {
  connectionStatus.textContent = text;
  connectionStatus.className = text === 'live' ? 'on' : 'off';
}

/** Sets up the button that resets the emulator after a confirmation. */
function setUpResetButton(): void {
  const button = requireElement('#reset', HTMLButtonElement);
  const dialog = requireElement('#ask-reset', HTMLDialogElement);
  button.hidden = false;
  button.addEventListener('click', () => {
    dialog.returnValue = '';
    dialog.showModal();
  });
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'reset') void callApi('POST', 'reset', {}, 'The emulator was reset.');
  });
}

document.addEventListener('visibilitychange', subscribeToEvents);
setUpFaultForm();
setUpResetButton();
refreshAll();
subscribeToEvents();
