import { constants, randomBytes, X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import { createSecureContext, type SecureContextOptions } from 'node:tls';

/** A certificate and its key, PEM. */
export interface LeafPem {
  /** The leaf first, then what leads to its anchor. */
  readonly certificate: string;
  readonly key: string;
}

/**
 * TLS 1.2 with forward secrecy and authenticated encryption alone, the hub's order counts (AES of 128 bits first: small
 * devices have it in hardware, or CCM where they have no GCM); then what TLS 1.3 has of its own.
 */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES128-CCM',
  'ECDHE-ECDSA-AES256-CCM',
].join(':');

/** How long a device may come back without a whole handshake, in s: appliances ask once an hour or so. */
const SESSION_LIFE = 86_400;
/** What Node's ticket keys have: a name, and keys to sign and to encrypt with. */
const TICKET_KEY_BYTES = 48;

/** What all of the hub's TLS servers share: the leaf, and the keys of the session tickets (RFC 5077; RFC 8446, 4.6.1). */
export class SharedTls {
  #leaf: LeafPem;
  #ticketKeys = randomBytes(TICKET_KEY_BYTES);
  #servers: readonly Server[] = [];

  constructor(leaf: LeafPem) {
    this.#leaf = leaf;
  }

  /** Whether the leaf is for this IP address. */
  isForAddress(address: string): boolean {
    return new X509Certificate(this.#leaf.certificate).checkIP(address) !== undefined;
  }

  /** What a server is made with. */
  get options(): SecureContextOptions {
    return this.#optionsWith(this.#leaf);
  }

  /** Has these servers follow what comes. */
  lead(servers: readonly Server[]): void {
    this.#servers = servers;
  }

  /**
   * Shows another leaf to those who connect from now on. Connections that stand are left alone, and tickets stay good.
   * @throws Error where certificate and key are not fit for TLS
   */
  renewLeaf(leaf: LeafPem): void {
    createSecureContext(this.#optionsWith(leaf));
    this.#leaf = leaf;
    this.#apply();
  }

  /** Ends all tickets: whoever comes to know a key can read what was said under it, and not for longer than it was in use. */
  rotateTicketKeys(): void {
    this.#ticketKeys = randomBytes(TICKET_KEY_BYTES);
    this.#apply();
  }

  #apply(): void {
    for (const server of this.#servers) server.setSecureContext(this.options);
  }

  #optionsWith({ certificate, key }: LeafPem): SecureContextOptions {
    return {
      cert: certificate,
      key,
      minVersion: 'TLSv1.2',
      ciphers: CIPHERS,
      honorCipherOrder: true,
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      sessionTimeout: SESSION_LIFE,
      ticketKeys: this.#ticketKeys,
    };
  }
}
