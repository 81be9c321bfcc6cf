import type { FastifyInstance } from 'fastify';
import type { Callback, LanService } from '../core/lan-service.ts';
import { Secret } from '../core/secret.ts';
import { sendNotice } from './document.ts';
import { frameFor } from './frame.ts';
import { pairingNotice } from './pairing-notices.ts';

/** Longer ones are no codes: the portal's are short. */
const LONGEST_CODE = 4096;

/**
 * The portal's redirect lands here (steady request flow). It is plain HTTP: the code in it is worth nothing without
 * the hub's secret, and a browser would warn of the hub's own certificate in the middle of a login.
 */
export function serveCallback(
  app: FastifyInstance,
  service: Pick<LanService, 'receiveCallback'>,
  hubName: string,
): void {
  app.get<{ Params: { nonce: string } }>('/callback/:nonce', async (request, reply) => {
    const { params, url } = request;
    const frame = frameFor(hubName, request);
    const { result: texts } = frame.texts;
    const refuse = (status: number, heading: string, text: string) =>
      sendNotice(reply, status, frame, { mood: 'bad', heading, text });
    // Only the first "?" is a delimiter (RFC 3986, 3.4): a code may hold more of them.
    const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
    const callback = read(new URLSearchParams(query));
    if (callback === null) return refuse(400, texts.malformed, texts.malformedText);
    const found = await service.receiveCallback(params.nonce, callback);
    if (found === null) return refuse(404, texts.unknown, texts.unknownText);
    const { pairing, appliance } = found;
    if (callback.kind === 'nothing' && pairing.step.kind === 'waiting') {
      return refuse(400, texts.noCode, texts.noCodeText);
    }
    return sendNotice(reply, 200, frame, pairingNotice(pairing, appliance, frame.texts));
  });
}

function read(query: URLSearchParams): Callback | null {
  const codes = query.getAll('code');
  const errors = query.getAll('error');
  const [code] = codes;
  const [error] = errors;
  if (codes.length + errors.length > 1 || (code ?? '').length > LONGEST_CODE || (error ?? '').length > 256) return null;
  if (code) return { kind: 'code', code: new Secret(code) };
  return error ? { kind: 'error', error } : { kind: 'nothing' };
}
