import { isIP } from 'node:net';
import type { HubLinks } from '../broker/administration.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { HubStatus } from '../core/administration.ts';
import type { NoticeSender } from '../core/health/notice.ts';
import type { Named } from '../core/name.ts';
import type { ApplianceLabel } from '../core/pairings/pairing-administration.ts';
import { type LanWatch, readLan } from '../mdns/networks/lan-watch.ts';
import { urlHost } from '../system/addresses.ts';
import { version } from '../system/version.ts';

/** The ports that the hub uses. */
export interface HubPorts {
  readonly http: number;
  readonly https: number;
  /** Where tokens are issued to programs of this machine: null for nowhere. The port is null while it is unavailable. */
  local: { readonly port: number | null } | null;
  /** As `local`: where metrics are served. */
  metrics: { readonly port: number | null } | null;
}

/** The current name, addresses and pin of the hub. */
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

  /** The URL of a path on the HTTPS port. */
  endpoint(path: string): string {
    return `https://${this.#leaf.urlHostFor(this.address)}:${this.ports.https}${path}`;
  }

  /** The same with a host that stays when the hub's address changes: its mDNS name, or that of the owner's certificate. */
  stableEndpoint(path: string): string {
    return `https://${this.#leaf.urlHostFor(null)}:${this.ports.https}${path}`;
  }

  /** The short link for a key, on the HTTP port; null while the hub has no address on the home network. */
  shortLink(key: string): string | null {
    return this.address === null ? null : `http://${urlHost(this.address)}:${this.ports.http}/l/${key}`;
  }

  /** The pin of the certificate that appliances trust. */
  fingerprint(): string {
    return this.#leaf.current.anchor.fingerprint;
  }

  /** The text of a label for the door of an appliance's cabinet. */
  labelText({ name, title }: Named): ApplianceLabel {
    const path = `/p/${encodeURIComponent(name)}`;
    return {
      name,
      title,
      hubName: this.#name,
      link: this.stableEndpoint(path),
      addressLink: this.address === null ? null : `https://${urlHost(this.address)}:${this.ports.https}${path}`,
    };
  }

  /** The part of `status` with the hub's id, name, version, address and ports. */
  statusFields(): Pick<
    HubStatus,
    'id' | 'name' | 'version' | 'address' | 'httpPort' | 'httpsPort' | 'localPort' | 'metricsPort'
  > {
    const { http, https, local, metrics } = this.ports;
    return {
      id: this.#id,
      name: this.#name,
      version: version(),
      address: this.address,
      httpPort: http,
      httpsPort: https,
      ...(local?.port ? { localPort: local.port } : {}),
      ...(metrics?.port ? { metricsPort: metrics.port } : {}),
    };
  }

  /** How notices identify the hub. */
  noticeSender(): NoticeSender {
    return { id: this.#id, name: this.#name, page: this.endpoint('/') };
  }
}

/**
 * The hub's current address on the home network; null while there is none.
 * @param setting `lan.address`
 * @param listen `lan.listen`
 */
export function lanAddress(setting: string, listen?: readonly string[]): string | null {
  return readLan(setting, listen).address?.address ?? null;
}

/** The current addresses of the hub, and the configured one. */
export function hubAddresses({ address, listen }: Pick<Configuration['lan'], 'address' | 'listen'>): string[] {
  const configured = isIP(address) === 0 ? [] : [address];
  return [...readLan(address, listen).addresses, ...configured];
}
