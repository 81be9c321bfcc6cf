import type { Environment } from '../broker/environment.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { MdnsAdvertiser } from '../mdns/announcing/advertiser.ts';
import { CopyCheck } from '../mdns/conflicts/copy-check.ts';
import type { LanWatch } from '../mdns/networks/lan-watch.ts';
import { version } from '../system/version.ts';
import type { Identity } from './identity.ts';
import type { HubPlace } from './place.ts';

/** What a hub is advertised from. */
export interface AdvertisingContext {
  readonly environment: Environment;
  readonly configuration: Pick<Configuration, 'name' | 'lan'>;
  readonly identity: Identity;
  readonly lan: LanWatch;
  readonly leaf: HubLeaf;
  readonly place: HubPlace;
}

/** The hub's advertisement over mDNS. Disposing of it says goodbye. */
export interface Advertising extends AsyncDisposable {
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
export function openAdvertising(context: AdvertisingContext): Advertising {
  const { configuration, identity, lan, leaf, place } = context;
  const { clock, timers, random, log } = context.environment;
  const { mdns } = configuration.lan;
  const { http, https } = place.ports;
  const copies = new CopyCheck({
    authority: () => identity.ca.authority.certificate,
    ownLeaf: () => leaf.shown.pem.certificate,
    clock,
    timers,
  });
  const advertiser = new MdnsAdvertiser({
    instanceName: configuration.name,
    id: identity.id,
    httpsPort: https,
    txt: () => ({ v: version(), http: String(http), capk: place.fingerprint() }),
    isCopy: (address, port, signal) => copies.isCopy(address, port, signal),
    timers,
    random,
    log,
  });
  return {
    async announce() {
      if (mdns) await advertiser.follow(lan.current);
    },
    skipGoodbye: () => advertiser.skipGoodbye(),
    get idTaken() {
      return advertiser.taken;
    },
    get nameClaimed() {
      return advertiser.claimed;
    },
    get unannounced() {
      return mdns && lan.current.address !== null && advertiser.taken === null ? advertiser.waitingFor : null;
    },
    [Symbol.asyncDispose]: () => advertiser[Symbol.asyncDispose](),
  };
}
