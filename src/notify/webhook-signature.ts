import { createHmac } from 'node:crypto';

/** What a shared secret begins with (https://www.standardwebhooks.com). */
const PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/**
 * The key of a shared secret in the form of Standard Webhooks.
 * @throws Error if the secret has another form, with a message that fits after the name of its file
 */
export function parseSigningKey(secret: string): Buffer {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(encoded, 'base64');
  const isBase64 = key.toString('base64').replaceAll('=', '') === encoded.replaceAll('=', '');
  if (!isBase64 || key.length < MIN_KEY_BYTES || key.length > MAX_KEY_BYTES) {
    throw new Error(
      `must contain "${PREFIX}" and ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES} bytes in base64, such as the output of: echo "${PREFIX}$(openssl rand -base64 32)"`,
    );
  }
  return key;
}

/**
 * The headers that sign a message (Standard Webhooks, "Signature scheme").
 * @param id identifies the message, also when it is sent again
 * @param wall when it is sent, in ms since 1970
 */
export function signatureHeaders(
  key: Buffer,
  id: string,
  wall: number,
  body: string,
): Readonly<Record<string, string>> {
  const seconds = Math.floor(wall / 1000);
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` };
}
