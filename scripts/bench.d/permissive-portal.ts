import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { HubProcessOptions } from '../../test/support/hub-process.ts';
import { PEER_CLIENT } from './peers.ts';

/** A refresh that a portal has granted. */
export interface GrantedRefresh {
  /** The id of the connection, see `storeMadeUpFleet`; empty if the refresh token does not tell. */
  readonly connection: string;
  readonly accessToken: string;
}

/** A portal that accepts every refresh token, and takes less CPU time than the emulator. */
export interface PermissivePortal extends AsyncDisposable, NonNullable<HubProcessOptions['emulator']> {
  /** How many refreshes it has granted. */
  readonly refreshes: number;
  /** Called when the response to a refresh is sent. */
  onRefresh: (refresh: GrantedRefresh) => void;
}

/** @param lifetime of its access tokens, in ms */
export async function startPermissivePortal(lifetime: number): Promise<PermissivePortal> {
  const server = createServer(async (request, response) => {
    const connection = await connectionOf(request);
    const [accessToken, rest] = [randomToken(60), randomToken(connection === '' ? 60 : 32)];
    const refreshToken = connection === '' ? rest : `${connection}.${rest}`;
    const tokens = { access_token: accessToken, refresh_token: refreshToken };
    const body = { ...tokens, token_type: 'Bearer', expires_in: lifetime / 1000 };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (request.method !== 'POST') return;
    portal.refreshes += 1;
    portal.onRefresh({ connection, accessToken });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const portal = {
    ...{ clientId: PEER_CLIENT.client_id, clientSecret: PEER_CLIENT.client_secret, baseUrl: url, frontendUrl: url },
    ...{ refreshes: 0, onRefresh: (_: GrantedRefresh): void => undefined },
    [Symbol.asyncDispose]: async () => void server.close(),
  };
  return portal;
}

async function connectionOf(request: IncomingMessage): Promise<string> {
  const token = new URLSearchParams(await text(request)).get('refresh_token') ?? '';
  const end = token.indexOf('.');
  return end === -1 ? '' : token.slice(0, end);
}

function randomToken(bytes: number): string {
  return randomBytes(bytes).toString('base64url');
}
