import { constants } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';

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
const SESSION_TIMEOUT = 86_400;

/**
 * What a TLS server of the hub's is made with, and made anew. Whenever it is, the keys of its session tickets (RFC 5077;
 * RFC 8446, 4.6.1) are others: who comes back shakes hands once more.
 */
export function tlsOptions({ certificate, key }: LeafPem): SecureContextOptions {
  return {
    cert: certificate,
    key,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    sessionTimeout: SESSION_TIMEOUT,
  };
}
