import type { Environment } from '../broker/ports.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import { MdnsAdvertiser } from '../mdns/announcing/advertiser.ts';
import { CloneDetector } from '../mdns/conflicts/clone-detector.ts';
import { version } from '../system/version.ts';
import type { HubEndpoints } from './hub-endpoints.ts';
import type { Identity } from './identity.ts';

interface HubAdvertiserContext {
  readonly environment: Environment;
  /** The hub's name, as configured. */
  readonly name: string;
  readonly identity: Identity;
  /** Null if the hub is alone. */
  readonly siteId: string | null;
  readonly leaf: HubLeaf;
  readonly endpoints: HubEndpoints;
}

/** Prepares the advertisement of the hub over mDNS; the first `update` starts it. */
export function createHubAdvertiser(context: HubAdvertiserContext): MdnsAdvertiser {
  const { name, identity, siteId, leaf, endpoints } = context;
  const { clock, timers, random, log } = context.environment;
  const { http, https } = endpoints.ports;
  const cloneDetector = new CloneDetector({
    caCertificate: () => identity.ca.authority.certificate,
    ownLeaf: () => leaf.current.pem.certificate,
    clock,
    timers,
  });
  return new MdnsAdvertiser({
    instanceName: name,
    id: identity.id,
    httpsPort: https,
    txt: () => ({
      v: version(),
      http: String(http),
      capk: endpoints.fingerprint(),
      ...(siteId !== null && { site: siteId }),
    }),
    isClone: (address, port, signal) => cloneDetector.isClone(address, port, signal),
    timers,
    random,
    log,
  });
}
