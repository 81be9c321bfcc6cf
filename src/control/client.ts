import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { Failure } from '../core/failure.ts';
import { version } from '../system/version.ts';
import { failureFromResponse } from './failures.ts';
import { findControlSocket } from './find-control-socket.ts';
import type { PairingEventMessage } from './messages.ts';
import {
  pairingEventsRoute,
  type Route,
  type RouteInput,
  type RouteName,
  type RouteResponse,
  routes,
  VERSION_HEADER,
} from './routes.ts';

/**
 * The command line's client of the running hub. Every call rejects with the hub's own Failure if the hub rejects the
 * request, and with `hub_stopping` if the hub stops before it responds.
 */
export type ControlClient = Awaited<ReturnType<typeof connectControlClient>>;

/** The members of a request; left out if the route has none. */
type Arguments<Name extends RouteName> = object extends RouteInput<Name> ? [] : [request: RouteInput<Name>];

/**
 * Connects to the running hub.
 * @param paths where its socket may be; the first one with a listener is used
 * @param onOtherVersion called with the hub's version if that is not this program's, once
 * @throws Failure `hub_not_running`, or `not_allowed` if this user has no access to the hub
 */
export async function connectControlClient(paths: readonly string[], onOtherVersion?: (version: string) => void) {
  const socketPath = await findControlSocket(paths);
  const closing = new AbortController();
  let isVersionChecked = false;

  async function send(route: Route, request: object, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await sendRequest(socketPath, route, request, AbortSignal.any([signal, closing.signal]));
    const running = response.headers[VERSION_HEADER];
    if (!isVersionChecked && typeof running === 'string' && running !== version()) onOtherVersion?.(running);
    isVersionChecked = true;
    return response;
  }

  return {
    /** Sends the request of a route; {@link routes} defines each. */
    async request<Name extends RouteName>(name: Name, ...[request]: Arguments<Name>): Promise<RouteResponse<Name>> {
      try {
        const response = await send(routes[name], request ?? {}, closing.signal);
        return parseResponse(response.statusCode ?? 0, await text(response));
      } catch (error) {
        throw error instanceof Failure ? error : hubStopping(error);
      }
    },
    /** The events of a pairing, until it has ended. Aborting the signal ends the iteration without an error. */
    async *followPairing(id: string, signal: AbortSignal): AsyncGenerator<PairingEventMessage, void> {
      let ended = false;
      try {
        const response = await send(pairingEventsRoute, { id }, signal);
        const status = response.statusCode ?? 0;
        if (status !== 200) parseResponse(status, await text(response));
        for await (const line of readLines(response)) {
          const report = parseResponse<PairingEventMessage>(status, line);
          ended = report.event === 'paired' || report.event === 'failed';
          yield report;
        }
      } catch (error) {
        if (signal.aborted) return;
        throw error instanceof Failure ? error : hubStopping(error);
      }
      if (!ended && !signal.aborted) throw hubStopping();
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
    },
  };
}

/** Sends a request on its own connection, without a timeout: a refresh may take long if the portal is slow. */
function sendRequest(
  socketPath: string,
  { method, path: pattern }: Route,
  request: object,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const members = new Map(Object.entries(request));
  const path = pattern.replaceAll(/:(\w+)/g, (_, member: string) => {
    const value = String(members.get(member));
    members.delete(member);
    return encodeURIComponent(value);
  });
  const body = members.size === 0 ? '' : JSON.stringify(Object.fromEntries(members));
  const headers = body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  httpRequest({ socketPath, method, path, headers, agent: false, signal }, resolve).on('error', reject).end(body);
  return promise;
}

/**
 * The members of a response have the names and types that the hub of this version gives them.
 * @throws Failure the hub's own, or `unexpected` if the response is not JSON
 */
function parseResponse<Response>(status: number, text: string): Response {
  const body = text === '' ? undefined : parseJson(text);
  if (status < 200 || status > 299) throw failureFromResponse(status, body);
  return body as Response;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(
      'unexpected',
      'the response of the hub is not JSON: check that the running hub and this command have the same version, and see its log',
      { cause: error },
    );
  }
}

/** The lines of a response, as they arrive. */
async function* readLines(response: IncomingMessage): AsyncGenerator<string> {
  let pending = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    const lines = `${pending}${chunk}`.split('\n');
    pending = lines.pop() ?? '';
    yield* lines;
  }
}

function hubStopping(cause?: unknown): Failure {
  const message = 'the hub stopped before it responded; when it runs again, check the result with "latchkey status"';
  return new Failure('hub_stopping', message, { cause });
}
