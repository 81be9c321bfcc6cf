import type { LoginLinkOutcome, PollOutcome, Portal } from '../core/portals/portal.ts';
import type { TokenOutcome } from '../core/portals/token-outcome.ts';
import type { ConnectedPortal, ConnectedPortals } from './ports.ts';

type PortalOutcome = LoginLinkOutcome | PollOutcome | TokenOutcome;

/** Outcomes of a portal in normal service; a firewall or an overloaded portal responds differently. */
const AVAILABLE_OUTCOMES: ReadonlySet<PortalOutcome['kind']> = new Set([
  'link',
  'code',
  'not_yet',
  'slow_down',
  'denied',
  'ended',
  'granted',
  'refused',
  'misconfigured',
]);

/** What is called with a portal's name about its responses. */
interface ResponseListeners {
  /** It has responded as in normal service. */
  onAvailable(portal: string): void;
  /** It has responded, to any request for a login or tokens. @param time its clock, in ms since 1970; null if unknown */
  onTime(portal: string, time: number | null): void;
}

/** The same portals; calls the listeners before the caller gets a response. */
export function withResponseListeners(portals: ConnectedPortals, listeners: ResponseListeners): ConnectedPortals {
  const observed = new WeakMap<ConnectedPortal, ConnectedPortal>();
  return {
    names: portals.names,
    nameOf: (identity) => portals.nameOf(identity),
    get(name) {
      const connected = portals.get(name);
      if (connected === undefined) return undefined;
      const wrapped = observed.get(connected) ?? {
        ...connected,
        portal: observePortal(connected.portal, name, listeners),
      };
      observed.set(connected, wrapped);
      return wrapped;
    },
  };
}

function observePortal(portal: Portal, name: string, { onAvailable, onTime }: ResponseListeners): Portal {
  async function observe<Outcome extends PortalOutcome>(request: Promise<Outcome>): Promise<Outcome> {
    const outcome = await request;
    if ('portalTime' in outcome) onTime(name, outcome.portalTime);
    // The hub makes a link that redirects by itself.
    const isOwn = outcome.kind === 'link' && outcome.link.kind === 'redirect';
    if (AVAILABLE_OUTCOMES.has(outcome.kind) && !isOwn) onAvailable(name);
    return outcome;
  }
  return {
    get redirectAddress() {
      return portal.redirectAddress;
    },
    requestLink: (...args) => observe(portal.requestLink(...args)),
    poll: (...args) => observe(portal.poll(...args)),
    prepareTokenRequest: (signal) => portal.prepareTokenRequest(signal),
    exchangeCode: (...args) => observe(portal.exchangeCode(...args)),
    refresh: (...args) => observe(portal.refresh(...args)),
    revoke: (...args) => portal.revoke(...args),
    fetchTime: () => portal.fetchTime(),
  };
}
