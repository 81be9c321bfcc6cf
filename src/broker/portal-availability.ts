import type { TokenOutcome } from '../core/grants/token-outcome.ts';
import type { LoginLinkOutcome, PollOutcome, Portal } from '../core/portal.ts';
import type { ConnectedPortal, ConnectedPortals } from './ports.ts';

type PortalOutcome = LoginLinkOutcome | PollOutcome | TokenOutcome;

/** What a portal answers when it serves; a firewall, or one that has no room, answers otherwise. */
const AVAILABLE_OUTCOMES: ReadonlySet<PortalOutcome['kind']> = new Set([
  'link',
  'code',
  'not_yet',
  'granted',
  'refused',
  'misconfigured',
]);

/** The same portals; `onAnswer` hears the name of one each time it has answered a request as it does when it serves. */
export function withAvailabilityListener(
  portals: ConnectedPortals,
  onAnswer: (portal: string) => void,
): ConnectedPortals {
  const heard = new WeakMap<ConnectedPortal, ConnectedPortal>();
  return {
    names: portals.names,
    nameOf: (identity) => portals.nameOf(identity),
    get(name) {
      const connected = portals.get(name);
      if (connected === undefined) return undefined;
      const known = heard.get(connected) ?? {
        ...connected,
        portal: observePortal(connected.portal, () => onAnswer(name)),
      };
      heard.set(connected, known);
      return known;
    },
  };
}

function observePortal(portal: Portal, onAnswer: () => void): Portal {
  async function heard<Of extends PortalOutcome>(request: Promise<Of>): Promise<Of> {
    const outcome = await request;
    if (AVAILABLE_OUTCOMES.has(outcome.kind)) onAnswer();
    return outcome;
  }
  return {
    requestLink: (...of) => heard(portal.requestLink(...of)),
    pollCode: (...of) => heard(portal.pollCode(...of)),
    exchangeCode: (...of) => heard(portal.exchangeCode(...of)),
    refresh: (...of) => heard(portal.refresh(...of)),
    fetchTime: () => portal.fetchTime(),
  };
}
