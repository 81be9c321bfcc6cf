import type { Environment } from '../broker/environment.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { MdnsAdvertiser } from '../mdns/announcing/advertiser.ts';
import { CloneDetector } from '../mdns/conflicts/clone-detector.ts';
import type { LanWatch } from '../mdns/networks/lan-watch.ts';
import { version } from '../system/version.ts';
import type { HubEndpoints } from './hub-endpoints.ts';
import type { Identity } from './identity.ts';

/** What a hub is advertised from. */
export interface HubAdvertiserContext {
  readonly environment: Environment;
  readonly configuration: Pick<Configuration, 'name' | 'lan'>;
  readonly identity: Identity;
  readonly lan: LanWatch;
  readonly leaf: HubLeaf;
  readonly endpoints: HubEndpoints;
}

/** The hub's advertisement over mDNS. Disposing of it says goodbye. */
export interface HubAdvertiser extends AsyncDisposable {
  /** Announces the hub with its present addresses and pin, unless `lan.mdns` is off. */
  announce(): Promise<void>;
  /** The next hub of this process is announced alike: this one leaves without a goodbye. */
  skipGoodbye(): void;
  /** In words, that another hub on the network has this one's id and key; null if none has. */
  readonly idTaken: string | null;
  /** In words, that another device claims the hub's host name; null if none does. */
  readonly nameClaimed: string | null;
  /** In words, what else keeps the hub from being announced; null if nothing does. */
  readonly unannounced: string | null;
}

/** Prepares the advertisement; the first `announce` begins it. */
export function createHubAdvertiser(context: HubAdvertiserContext): HubAdvertiser {
  const { configuration, identity, lan, leaf, endpoints: place } = context;
  const { clock, timers, random, log } = context.environment;
  const { mdns } = configuration.lan;
  const { http, https } = place.ports;
  const copies = new CloneDetector({
    caCertificate: () => identity.ca.authority.certificate,
    ownLeaf: () => leaf.current.pem.certificate,
    clock,
    timers,
  });
  const advertiser = new MdnsAdvertiser({
    instanceName: configuration.name,
    id: identity.id,
    httpsPort: https,
    txt: () => ({ v: version(), http: String(http), capk: place.fingerprint() }),
    isClone: (address, port, signal) => copies.isClone(address, port, signal),
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
