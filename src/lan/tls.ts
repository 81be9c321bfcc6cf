import { constants } from 'node:crypto';
import type { SecureContextOptions } from 'node:tls';

/** A certificate and its key, PEM. */
export interface LeafPem {
  /** The leaf, followed by the rest of its chain. */
  readonly certificate: string;
  readonly key: string;
}

/**
 * The TLS 1.3 suites, and of TLS 1.2 only suites with forward secrecy and authenticated encryption. The order is the
 * server's: AES-128 comes first, because small devices have it in hardware; CCM is for devices without GCM.
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

/** How long a client may resume a TLS session, in s: appliances request a token about once an hour. */
const SESSION_TIMEOUT = 86_400;

/**
 * The options for a TLS server and for each new secure context. A new context has new keys for session tickets (RFC
 * 5077; RFC 8446, 4.6.1), so that returning clients need a full handshake.
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
