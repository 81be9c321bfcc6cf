import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import * as v from 'valibot';
import type { InviteRequest } from '../core/administration.ts';
import type { GrantImport } from '../core/connections/connection-administration.ts';
import { Failure } from '../core/failure.ts';
import type { Secret } from '../core/secret.ts';
import { failureFromResponse } from './failures.ts';
import { findControlSocket } from './find-control-socket.ts';
import type { PairingEventMessage } from './messages.ts';
import { pairingEventsRoute, type Route, routes } from './routes.ts';

/**
 * The command line's client of the running hub; {@link routes} defines each request. Every call rejects with the hub's
 * own Failure if the hub rejects the request, and with `hub_stopping` if the hub stops before it responds.
 */
export type ControlClient = Awaited<ReturnType<typeof connectControlClient>>;

/**
 * Connects to the running hub.
 * @param paths where its socket may be; the first one with a listener is used
 * @throws Failure `hub_not_running`, or `not_allowed` if this user has no access to the hub
 */
export async function connectControlClient(paths: readonly string[]) {
  const socketPath = await findControlSocket(paths);
  const closing = new AbortController();

  async function call<R extends Route>(
    route: R,
    request: v.InferInput<R['request']>,
  ): Promise<v.InferInput<R['response']>> {
    const { status, body } = await exchange(route, request).catch((error: unknown) => {
      throw hubStopping(error);
    });
    return parseResponse(route.response, status, body);
  }

  async function exchange(route: Route, request: Record<string, unknown>): Promise<{ status: number; body: string }> {
    const response = await sendRequest(socketPath, route, request, closing.signal);
    return { status: response.statusCode ?? 0, body: await text(response) };
  }

  return {
    status: () => call(routes.status, {}),
    removeHub: (name: string) => call(routes.removeHub, { name }),
    portals: () => call(routes.portals, {}),
    checkPortal: (name: string) => call(routes.checkPortal, { name }),
    testNotices: () => call(routes.testNotices, {}),
    authority: () => call(routes.authority, {}),
    rotateAuthority: (keep: number) => call(routes.rotateAuthority, { keep }),
    keepOldAuthority: (keep: number) => call(routes.keepOldAuthority, { keep }),
    /** @param connection the name of the connection that it uses; null for one of its own */
    addAppliance: (name: string, scope: string | null, portal: string | null, connection: string | null = null) =>
      call(routes.addAppliance, { name, scope, portal, connection }),
    moveAppliance: (name: string, connection: string) => call(routes.moveAppliance, { name, connection }),
    removeAppliance: (name: string) => call(routes.removeAppliance, { name }),
    rotateSecret: (name: string, replaceKeys: boolean) =>
      call(routes.rotateSecret, { name, replace_keys: replaceKeys }),
    approveAppliance: (name: string, code: string | null, connection: string | null = null) =>
      call(routes.approveAppliance, { name, code, connection }),
    invite: (invite: InviteRequest) => call(routes.invite, { ...invite }),
    openRegistration: (seconds: number) => call(routes.openRegistration, { open_for: seconds }),
    addConnection: (name: string, scope: string | null, portal: string | null) =>
      call(routes.addConnection, { name, scope, portal }),
    /** @param evenIfUsed whether appliances may use it: each gets a connection of its own */
    removeConnection: (name: string, evenIfUsed: boolean) =>
      call(routes.removeConnection, { name, even_if_used: evenIfUsed }),
    importGrant: ({ name, scope, portal, refreshToken, replace }: GrantImport) =>
      call(routes.importGrant, { name, scope, portal, refresh_token: refreshToken.reveal(), replace }),
    /** @returns the id of the pairing */
    pair: async (name: string) => (await call(routes.pair, { name })).pairing,
    /** @param address the one on which a browser ended after a login of the connection's open pairing */
    pasteAddress: (name: string, address: Secret) => call(routes.pasteAddress, { name, address: address.reveal() }),
    pairAll: () => call(routes.pairAll, {}),
    /** @param id of the pairing batch */
    nextPairing: (id: string) => call(routes.nextPairing, { id }),
    label: (name: string) => call(routes.label, { name }),
    unpair: (name: string) => call(routes.unpair, { name }),
    token: (name: string) => call(routes.token, { name }),
    history: (name: string) => call(routes.history, { name }),
    refresh: (name: string) => call(routes.refresh, { name }),
    setupCode: () => call(routes.setupCode, {}),
    rotateSetupCode: () => call(routes.rotateSetupCode, {}),
    rotateStoreKey: () => call(routes.rotateStoreKey, {}),
    takeSnapshot: () => call(routes.takeSnapshot, {}),
    backUp: (passphrase: string) => call(routes.backUp, { passphrase }),
    restore: (copy: string, passphrase: string) => call(routes.restore, { copy, passphrase }),
    /** @returns the id of the reload */
    reload: async () => (await call(routes.reload, {})).reload,
    reloadOutcome: (id: string) => call(routes.reloadOutcome, { id }),
    /** The events of a pairing, until it has ended. Aborting the signal ends the iteration without an error. */
    async *followPairing(id: string, signal: AbortSignal): AsyncGenerator<PairingEventMessage, void> {
      let ended = false;
      try {
        const response = await sendRequest(
          socketPath,
          pairingEventsRoute,
          { id },
          AbortSignal.any([signal, closing.signal]),
        );
        const status = response.statusCode ?? 0;
        if (status !== 200) parseResponse(pairingEventsRoute.response, status, await text(response));
        for await (const line of readLines(response)) {
          const report = parseResponse(pairingEventsRoute.response, status, line);
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
  request: Record<string, unknown>,
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

/** @throws Failure the hub's own, or `unexpected` if the response does not have the expected form */
function parseResponse<Schema extends v.GenericSchema>(
  schema: Schema,
  status: number,
  text: string,
): v.InferInput<Schema> {
  const body = text === '' ? undefined : parseJson(text);
  if (status < 200 || status > 299) throw failureFromResponse(status, body);
  if (v.is(schema, body)) return body;
  throw new Failure(
    'unexpected',
    'unexpected response from the hub: check that the running hub and this command have the same version',
  );
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
