import type { FastifyInstance, FastifyReply } from 'fastify';
import { html } from 'ghtml';
import type { Switches } from '../settings/switches.ts';
import { received, wasReceived } from './received.ts';

/** It is the emulator that refuses another host's name, see `refuseForeignNames`. */
const MISDIRECTED = 421;

/**
 * Puts a web page or nothing in the place of the portal's JSON error bodies, where `errorBody` says so. The pages that
 * people see stay, and so do the answers under `/_emulator/` and to requests for another host.
 */
export function replaceErrorBodies(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!wasReceived(request)) return done();
    const { endpoint, portal } = received(request);
    const isOfPortal = endpoint !== null && reply.statusCode >= 400 && reply.statusCode !== MISDIRECTED;
    const kind = isOfPortal ? portal.settings.errorBody : 'json';
    const json = kind === 'json' || !String(reply.getHeader('content-type')).startsWith('application/json');
    done(null, json ? payload : errorBody(reply, kind, payload));
  });
}

/** Not imported: that evaluates all of node:http's exports, and with them loads a whole HTTP client. */
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** The body to send for an error instead of this JSON; sets its content type. */
export function errorBody(reply: FastifyReply, kind: Switches['errorBody'], json: unknown): unknown {
  if (kind === 'json') return json;
  reply.removeHeader('content-length');
  if (kind === 'empty') {
    reply.removeHeader('content-type');
    // Not null: Fastify's own hook for HEAD fails at that.
    return '';
  }
  reply.type('text/html; charset=utf-8');
  const title = `${reply.statusCode} ${STATUS_CODES[reply.statusCode] ?? 'Error'}`;
  return html`<!doctype html>
<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>
`;
}
