import type { FastifyRequest } from 'fastify';
import { isVerifiedOwnHost } from '../../system/http/host-check.ts';

/** The most pages that are remembered. */
const MAX_PAGES = 1000;

/**
 * At which of the hub's names or addresses a browser last opened the page of a pairing. The portal's redirect may bring
 * it to another one, at which it is not signed in, because a cookie is for one host.
 */
export class LoginHosts {
  readonly #hosts = new Map<string, string>();

  /** Records the host of a page that a signed-in browser opens, if it is certainly the hub. */
  record({ url, host, hostname, socket, headers, ingress }: FastifyRequest): void {
    // A page that updates itself may be open on another device.
    if (ingress !== undefined || (headers['sec-fetch-dest'] ?? 'document') !== 'document') return;
    if (!isVerifiedOwnHost(hostname, socket.localAddress, () => false)) return;
    this.#hosts.delete(url);
    this.#hosts.set(url, host);
    const [oldest] = this.#hosts.keys();
    if (oldest !== undefined && this.#hosts.size > MAX_PAGES) this.#hosts.delete(oldest);
  }

  /** The address of a page of the hub. @param usual the host if no browser has opened the page, with its port */
  urlOf(path: string, usual: string): string {
    return `https://${this.#hosts.get(path) ?? usual}${path}`;
  }
}
