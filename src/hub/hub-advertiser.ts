import type { Environment } from '../broker/ports.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { MdnsAdvertiser } from '../mdns/announcing/advertiser.ts';
import { CloneDetector } from '../mdns/conflicts/clone-detector.ts';
import type { LanWatch } from '../mdns/networks/lan-watch.ts';
import { version } from '../system/version.ts';
import type { HubEndpoints } from './hub-endpoints.ts';
import type { Identity } from './identity.ts';

/** What {@link createHubAdvertiser} needs. */
export interface HubAdvertiserContext {
  readonly environment: Environment;
  readonly configuration: Pick<Configuration, 'name' | 'lan'>;
  readonly identity: Identity;
  /** Null if the hub is alone. */
  readonly siteId: string | null;
  readonly lan: LanWatch;
  readonly leaf: HubLeaf;
  readonly endpoints: HubEndpoints;
}

/** The hub's advertisement over mDNS. Disposing of it sends the goodbye. */
export interface HubAdvertiser extends AsyncDisposable {
  /** Announces the hub with its current addresses and pin, unless `lan.mdns` is off. */
  announce(): Promise<void>;
  /** Prevents the goodbye, because the next hub of this process is announced in the same way. */
  skipGoodbye(): void;
  /** A message if another hub on the network has this hub's id and key, else null. */
  readonly idTaken: string | null;
  /** A message if another device claims the hub's host name, else null. */
  readonly nameClaimed: string | null;
  /** A message if anything else keeps the hub from being announced, else null. */
  readonly unannounced: string | null;
}

/** Prepares the advertisement; the first `announce` starts it. */
export function createHubAdvertiser(context: HubAdvertiserContext): HubAdvertiser {
  const { configuration, identity, siteId, lan, leaf, endpoints } = context;
  const { clock, timers, random, log } = context.environment;
  const { mdns } = configuration.lan;
  const { http, https } = endpoints.ports;
  const cloneDetector = new CloneDetector({
    caCertificate: () => identity.ca.authority.certificate,
    ownLeaf: () => leaf.current.pem.certificate,
    clock,
    timers,
  });
  const advertiser = new MdnsAdvertiser({
    instanceName: configuration.name,
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
  return {
    async announce() {
      if (mdns) await advertiser.update(lan.current);
    },
    skipGoodbye: () => advertiser.skipGoodbye(),
    get idTaken() {
      return advertiser.idConflict;
    },
    get nameClaimed() {
      return advertiser.nameConflict;
    },
    get unannounced() {
      return mdns && lan.current.address !== null && advertiser.idConflict === null
        ? advertiser.announcementProblem
        : null;
    },
    [Symbol.asyncDispose]: () => advertiser[Symbol.asyncDispose](),
  };
}
