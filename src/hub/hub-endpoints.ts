import { isIP } from 'node:net';
import type { HubLinks } from '../broker/administration.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { HubStatus } from '../core/administration.ts';
import type { ApplianceLabel } from '../core/pairings/pairing-administration.ts';
import type { NoticeSender } from '../core/reports/notice.ts';
import { type LanWatch, readLan } from '../mdns/networks/lan-watch.ts';
import { urlHost } from '../system/addresses.ts';
import { version } from '../system/version.ts';

/** The hub's ports in use. */
export interface HubPorts {
  readonly http: number;
  readonly https: number;
  /** Where metrics are served: null for nowhere, its port null while none could be had. */
  metrics: { readonly port: number | null } | null;
}

/** How the hub is called, reached and recognized, as it is at the moment of the question. */
export class HubEndpoints implements HubLinks {
  readonly #name: string;
  readonly #id: string;
  readonly #lan: LanWatch;
  readonly #leaf: HubLeaf;
  readonly ports: HubPorts;

  constructor(hub: { readonly name: string; readonly id: string }, lan: LanWatch, leaf: HubLeaf, ports: HubPorts) {
    this.#name = hub.name;
    this.#id = hub.id;
    this.#lan = lan;
    this.#leaf = leaf;
    this.ports = ports;
  }

  /** Null while the hub has no address on the home network. */
  get address(): string | null {
    return this.#lan.current.address?.address ?? null;
  }

  endpoint(path: string): string {
    return `https://${this.#leaf.urlHostFor(this.address)}:${this.ports.https}${path}`;
  }

  shortLink(key: string): string | null {
    return this.address === null ? null : `http://${urlHost(this.address)}:${this.ports.http}/l/${key}`;
  }

  fingerprint(): string {
    return this.#leaf.current.anchor.fingerprint;
  }

  /** What is printed for the door of an appliance's cabinet. */
  labelText(appliance: string): ApplianceLabel {
    const at = (host: string) => `https://${host}:${this.ports.https}/p/${encodeURIComponent(appliance)}`;
    return {
      name: appliance,
      hubName: this.#name,
      link: at(this.#leaf.urlHostFor(null)),
      addressLink: this.address === null ? null : at(urlHost(this.address)),
    };
  }

  /** The part of `status` that says where the hub is. */
  statusFields(): Pick<HubStatus, 'id' | 'name' | 'version' | 'address' | 'httpPort' | 'httpsPort' | 'metricsPort'> {
    const { http, https, metrics } = this.ports;
    return {
      id: this.#id,
      name: this.#name,
      version: version(),
      address: this.address,
      httpPort: http,
      httpsPort: https,
      ...(metrics?.port ? { metricsPort: metrics.port } : {}),
    };
  }

  /** The hub as notices name it. */
  noticeSender(): NoticeSender {
    return { id: this.#id, name: this.#name, page: this.endpoint('/') };
  }
}

/**
 * The hub's address on the home network as it is now; null while there is none.
 * @param setting `lan.address`
 */
export function lanAddress(setting: string): string | null {
  return readLan(setting).address?.address ?? null;
}

/** The addresses that the hub has now, and the one that it is configured to have. */
export function hubAddresses({ address, listen }: Pick<Configuration['lan'], 'address' | 'listen'>): string[] {
  const configured = isIP(address) === 0 ? [] : [address];
  return [...readLan(address, listen).addresses, ...configured];
}
